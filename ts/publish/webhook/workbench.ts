// For the developers of the customer's side: the deliveries and their answers, the replay of one, and a test event.
// Nothing here decides about a publish.
import type { Kysely, Selectable } from "kysely";
import { UnknownDelivery, WebhookMissing } from "../../errors.ts";
import type { Customers } from "../../organisation/customers.ts";
import type { DeliveryTable, Schema } from "../../store/schema.ts";
import { settlesDone } from "../../text/webhook-words.ts";
import type { Trace } from "../../tracing/trace.ts";
import type { WebhookAnswer } from "./answer.ts";
import { publishBody } from "./body.ts";
import type { Webhook, WebhookCall } from "./call.ts";
import { type DeliveryFilter, type DeliveryPosition, listDeliveries } from "./delivery-list.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import { MASK, readResponse, type WebhookResponse } from "./kept-response.ts";
import { nameIn } from "./outbox.ts";
import { newWebhookId } from "./signature.ts";
import { isOwnPair } from "./update-extras.ts";

/** Address and client id of a test event, which no broadcaster has. */
const TEST_ADDRESS = "192.0.2.1";
const TEST_CLIENT_ID = 0;

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
  /** What is kept of the response; null: there was none, or it is older than migration 0032. */
  readonly response: WebhookResponse | null;
}

/** What a replay needs to know about a call. */
type Repeatable = Pick<Selectable<DeliveryTable>, "client_id" | "call" | "name" | "body" | "attempts">;

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
  test(organisationId: string, customArguments: Uint8Array | null, trace?: Trace): Promise<Called>;
  /** All stored calls about one publish, oldest first. The caller has checked that the publish belongs to the
   *  organisation. */
  ofPublish(clientId: number): Promise<readonly Delivery[]>;
  /** The organisation has another webhook, or none (null): the state of the former one's gate is reset. */
  webhookChanged(organisationId: string, url: string | null): void;
}

export function createWorkbench(deps: {
  readonly db: Kysely<Schema>;
  readonly reads: Kysely<Schema>;
  readonly webhook: Pick<Webhook, "post" | "changed">;
  readonly deliveries: Pick<DeliveryLog, "flush">;
  readonly customers: Pick<Customers, "of">;
  readonly clock: { now(): number };
  readonly deadlineMs: number;
}): Workbench {
  const { db, reads, webhook, deliveries, customers, clock, deadlineMs } = deps;

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

  async function eventOf(organisationId: string, id: string): Promise<Repeatable | undefined> {
    const event = await db
      .selectFrom("outbox")
      .select(["client_id", "body", "attempts"])
      .where("id", "=", id)
      .where("organisation_id", "=", organisationId)
      .executeTakeFirst();
    return event && { ...event, call: "publish_done", name: nameIn(event.body) };
  }

  async function organisationOf(organisationId: string): Promise<{ readonly hash: string; readonly url: string }> {
    const { hash, webhook: url } = await db
      .selectFrom("organisation")
      .select(["hash", "webhook"])
      .where("id", "=", organisationId)
      .executeTakeFirstOrThrow();
    if (url === null) throw new WebhookMissing();
    return { hash, url };
  }

  async function call(
    organisationId: string,
    event: Pick<WebhookCall, "id" | "url" | "body" | "event"> & { readonly trace: Trace | null },
  ): Promise<Called> {
    const { keys } = await customers.of(organisationId);
    const startedAt = clock.now();
    const answer = await webhook.post({
      ...event,
      organisationId,
      keys,
      deadlineMs,
      retryConnection: false,
      isTrial: true,
    });
    return { id: event.id, answer, latencyMs: Math.max(0, clock.now() - startedAt) };
  }

  return {
    webhookChanged: webhook.changed,
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
      const rows = await reads.selectFrom("delivery").selectAll().where("client_id", "=", clientId).execute();
      return rows.map(shown).sort((a, b) => a.firstAt - b.firstAt);
    },
    async replay(organisationId, id, sending, trace) {
      const row = (await rowOf(organisationId, id)) ?? (await eventOf(organisationId, id));
      if (row === undefined) throw new UnknownDelivery();
      const { url } = await organisationOf(organisationId);
      await sending();
      const called = await call(organisationId, {
        id,
        url,
        body: Buffer.from(row.body, "latin1"),
        trace: trace ?? null,
        event: {
          call: row.call,
          clientId: Number(row.client_id),
          name: row.name,
          attempt: Number(row.attempts) + 1,
        },
      });
      const { answer } = called;
      if (answer.outcome === "answered" && settlesDone(answer.status)) {
        const delivered = { delivered_at: clock.now(), given_up_at: null, last_status: answer.status };
        await db.updateTable("outbox").set(delivered).where("id", "=", id).where("delivered_at", "is", null).execute();
      }
      return called;
    },
    async test(organisationId, customArguments, trace) {
      const { hash, url } = await organisationOf(organisationId);
      const name = `${hash}-TEST0`;
      const subject = {
        arguments: customArguments,
        name,
        app: "live",
        address: TEST_ADDRESS,
        clientId: TEST_CLIENT_ID,
      };
      return await call(organisationId, {
        id: newWebhookId(),
        url,
        body: publishBody(subject),
        trace: trace ?? null,
        event: { call: "publish", clientId: TEST_CLIENT_ID, name, attempt: 1 },
      });
    },
  };
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
    response: readResponse(row.response),
  };
}

/** Keeps names and their order, masks values of fields that are not ours. */
function masked(form: string): string {
  return form
    .split("&")
    .map((pair) => {
      if (isOwnPair(pair) || pair === "") return pair;
      const at = pair.indexOf("=");
      return at === -1 ? MASK : `${pair.slice(0, at)}=${MASK}`;
    })
    .join("&");
}
