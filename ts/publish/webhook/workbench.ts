// For the developers of the customer's side: the deliveries and their answers, the replay of one, and a test event.
// Nothing here decides about a publish.
import type { Kysely, Selectable } from "kysely";
import { UnknownDelivery, WebhookMissing } from "../../errors.ts";
import type { Customers } from "../../organisation/customers.ts";
import type { DeliveryTable, Schema } from "../../store/schema.ts";
import { settlesDone } from "../../text/webhook-words.ts";
import type { Trace } from "../../tracing/trace.ts";
import type { WebhookAnswer } from "./answer.ts";
import { pairsOf, publishBody } from "./body.ts";
import type { Webhook, WebhookCall } from "./call.ts";
import { type DeliveryFilter, type DeliveryPosition, listDeliveries } from "./delivery-list.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import { MASK, readResponse, type WebhookResponse } from "./kept-response.ts";
import { callOf, nameIn } from "./outbox/delivery.ts";
import { newWebhookId } from "./signature.ts";

/** What a test event is about: no broadcaster has this address and client id. */
const TEST_SUBJECT = { app: "live", address: "192.0.2.1", clientId: 0 } as const;

/** The webhook of an organisation, or the second one, which gets copies. */
export type WebhookName = "webhook" | "copies";

/** A delivery for display: secrets in its body are masked, also where the response repeats them. */
export interface Delivery {
  /** The webhook-id. */
  readonly id: string;
  readonly call: DeliveryTable["call"];
  readonly clientId: number;
  readonly name: string;
  /** Complete: not every role may see its query. */
  readonly url: string;
  readonly body: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly reason: string | null;
  readonly latencyMs: number;
  readonly attempts: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** It went to the second webhook. */
  readonly isCopy: boolean;
  /** What is kept of the response; null: there was none, or it is older than migration 0032. */
  readonly response: WebhookResponse | null;
}

/** What a replay needs to know about a call. */
type Repeatable = Pick<Selectable<DeliveryTable>, "client_id" | "call" | "name" | "body" | "attempts" | "is_copy">;

export interface Called {
  readonly id: string;
  readonly answer: WebhookAnswer;
  readonly latencyMs: number;
}

export interface Workbench {
  /** Newest first. */
  list(
    organisationId: string,
    filter: DeliveryFilter,
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly rest: DeliveryPosition | null }>;
  /** Throws `UnknownDelivery`. */
  find(organisationId: string, id: string): Promise<Delivery>;
  /** Sends the same body under the same id to the current webhook: of a delivery in the log, or of a publish_done that
   *  only the outbox still has. A publish_done delivered this way is not sent again. `sending` is awaited before anything
   *  is sent. Throws `UnknownDelivery` or `WebhookMissing`. */
  replay(organisationId: string, id: string, sending: () => Promise<void>, trace?: Trace): Promise<Called>;
  /** Calls the webhook about a publish that does not exist: client id 0. Throws `WebhookMissing`. */
  test(organisationId: string, to: WebhookName, customArguments: Uint8Array | null, trace?: Trace): Promise<Called>;
  /** All stored calls about one publish, oldest first. The caller has checked that the publish belongs to the
   *  organisation. */
  ofPublish(clientId: number): Promise<readonly Delivery[]>;
  /** The organisation has another webhook, or none (null): the state of the former one's gate is reset. */
  webhookChanged(organisationId: string, url: string | null): void;
  /** The same for the second webhook. */
  copiesChanged(organisationId: string, url: string | null): void;
}

interface WorkbenchDeps {
  readonly db: Kysely<Schema>;
  readonly reads: Kysely<Schema>;
  readonly webhook: Pick<Webhook, "post" | "changed">;
  /** The second webhooks. */
  readonly copies: Pick<Webhook, "post" | "changed">;
  readonly deliveries: Pick<DeliveryLog, "flush">;
  readonly customers: Pick<Customers, "of">;
  readonly clock: { now(): number };
  readonly deadlineMs: number;
}

export function createWorkbench(deps: WorkbenchDeps): Workbench {
  const { db, reads, webhook, copies, deliveries, clock } = deps;
  const call = createTrials(deps);

  async function rowOf(organisationId: string, id: string): Promise<Selectable<DeliveryTable> | undefined> {
    if (id.includes("\0")) throw new UnknownDelivery(); // no id contains one, and the store cannot hold NUL
    await deliveries.flush();
    return await db
      .selectFrom("delivery")
      .selectAll()
      .where("id", "=", id)
      .where("organisation_id", "=", organisationId)
      .executeTakeFirst();
  }

  return {
    webhookChanged: webhook.changed,
    copiesChanged: copies.changed,
    async list(organisationId, filter) {
      await deliveries.flush();
      const found = await listDeliveries(reads, organisationId, filter);
      return { deliveries: found.rows.map(shown), rest: found.rest };
    },
    async find(organisationId, id) {
      const row = await rowOf(organisationId, id);
      if (row === undefined) throw new UnknownDelivery();
      return shown(row);
    },
    async ofPublish(clientId) {
      await deliveries.flush();
      const ofPublish = reads.selectFrom("delivery").selectAll().where("client_id", "=", clientId);
      const rows = await ofPublish.where("is_copy", "is", null).execute();
      return rows.map(shown).sort((a, b) => a.firstAt - b.firstAt);
    },
    async replay(organisationId, id, sending, trace) {
      const row = (await rowOf(organisationId, id)) ?? (await eventOf(db, organisationId, id));
      if (row === undefined) throw new UnknownDelivery();
      const to = row.is_copy === 1 ? "copies" : "webhook";
      const called = await call(organisationId, to, sending, {
        id,
        body: () => Buffer.from(row.body, "latin1"),
        trace: trace ?? null,
        event: () => ({
          call: row.call,
          clientId: Number(row.client_id),
          name: row.name,
          attempt: Number(row.attempts) + 1,
        }),
      });
      const { answer } = called;
      if (answer.outcome === "answered" && settlesDone(answer.status)) {
        const delivered = { delivered_at: clock.now(), given_up_at: null, last_status: answer.status };
        const events = to === "webhook" ? "outbox" : "webhook_copy_outbox";
        await db.updateTable(events).set(delivered).where("id", "=", id).where("delivered_at", "is", null).execute();
      }
      return called;
    },
    async test(organisationId, to, customArguments, trace) {
      return await call(organisationId, to, async () => {}, {
        id: newWebhookId(),
        body: (hash) => publishBody({ ...TEST_SUBJECT, arguments: customArguments, name: testName(hash) }),
        trace: trace ?? null,
        event: (hash) => ({ call: "publish", clientId: TEST_SUBJECT.clientId, name: testName(hash), attempt: 1 }),
      });
    },
  };
}

const testName = (hash: string): string => `${hash}-TEST0`;

/** A call outside of any publish; `hash` is the organisation's. */
interface Trial {
  readonly id: string;
  readonly body: (hash: string) => Uint8Array;
  readonly event: (hash: string) => WebhookCall["event"];
  readonly trace: Trace | null;
}

/** Returns what calls one of the organisation's webhooks. `sending` is awaited before. Throws `WebhookMissing`. */
function createTrials({ db, webhook, copies, customers, clock, deadlineMs }: WorkbenchDeps) {
  return async (
    organisationId: string,
    to: WebhookName,
    sending: () => Promise<void>,
    { id, body, event, trace }: Trial,
  ): Promise<Called> => {
    const organisation = db.selectFrom("organisation").select(["hash", "webhook"]).where("id", "=", organisationId);
    const { hash, webhook: first } = await organisation.executeTakeFirstOrThrow();
    const customer = await customers.of(organisationId);
    const url = to === "webhook" ? first : (customer.copies?.url ?? null);
    if (url === null) throw new WebhookMissing();
    await sending();
    const startedAt = clock.now();
    const answer = await (to === "webhook" ? webhook : copies).post({
      id,
      organisationId,
      url,
      body: body(hash),
      keys: to === "webhook" ? customer.keys : (customer.copies?.keys ?? []),
      deadlineMs,
      retryConnection: false,
      isTrial: true,
      trace,
      event: event(hash),
    });
    return { id, answer, latencyMs: Math.max(0, clock.now() - startedAt) };
  };
}

/** An event that only an outbox has. */
async function eventOf(db: Kysely<Schema>, organisationId: string, id: string): Promise<Repeatable | undefined> {
  for (const table of ["outbox", "webhook_copy_outbox"] as const) {
    const event = await db
      .selectFrom(table)
      .select(["client_id", "body", "attempts", "call"])
      .where("id", "=", id)
      .where("organisation_id", "=", organisationId)
      .executeTakeFirst();
    const is_copy = table === "outbox" ? null : 1;
    if (event !== undefined) return { ...event, call: callOf(event), name: nameIn(event.body), is_copy };
  }
  return undefined;
}

function shown(row: Selectable<DeliveryTable>): Delivery {
  return {
    id: row.id,
    call: row.call,
    clientId: Number(row.client_id),
    name: row.name,
    url: row.url,
    body: masked(row.body),
    outcome: row.outcome,
    status: row.status === null ? null : Number(row.status),
    reason: row.reason,
    latencyMs: Number(row.latency_ms),
    attempts: Number(row.attempts),
    firstAt: Number(row.first_at),
    lastAt: Number(row.last_at),
    isCopy: row.is_copy === 1,
    response: readResponse(row.response),
  };
}

/** Keeps names and their order, masks values of fields that are not ours. */
function masked(form: string): string {
  const { custom, own } = pairsOf(form);
  const shownPairs = custom.map((pair) => {
    const at = pair.indexOf("=");
    if (pair === "") return pair;
    return at === -1 ? MASK : `${pair.slice(0, at)}=${MASK}`;
  });
  return [...shownPairs, ...own].join("&");
}
