// Delivers the events that must arrive (W17): reads them from the store, posts them, and retries until an answer ends
// it. Rows outlive the process; the id and the body never change. Not the place where events are written: record.ts.
// Invariant: a client id has at most one row (its publish_done), so order within a client id needs no more than `hold`.
import type { Kysely, Selectable } from "kysely";
import type { Logger } from "pino";
import type { Customers } from "../organisation/customers.ts";
import type { OutboxTable, Schema } from "../store/schema.ts";
import { judgeDelivery, wasTried } from "./retry-schedule.ts";
import type { Webhook } from "./webhook.ts";
import type { WebhookAnswer } from "./webhook-answer.ts";

/** Deliveries in flight: more wait in the store, and one organisation's slow customer cannot take all places. */
const IN_FLIGHT_LIMIT = 256;
const IN_FLIGHT_PER_ORGANISATION_LIMIT = 32;
/** Longest sleep between two looks into the store, ms. */
const SLEEP_LIMIT_MS = 60_000;
/** Pause after the store failed, ms. */
const STORE_FAILED_PAUSE_MS = 5_000;

export interface Outbox {
  /** Keeps the events of `clientId` back until `release`: an update is still in flight (W18). */
  hold(clientId: number): void;
  release(clientId: number): void;
  /** Delivers what is due, now and from now on. Returns at once. */
  wake(): void;
  /** Tries everything due once more for at most `limitMs`, then sleeps for good. What is left stays in the store. */
  stop(limitMs: number): Promise<void>;
  /** Events neither delivered nor given up, and the age of the oldest, ms. */
  depth(): Promise<{ readonly events: number; readonly oldestMs: number }>;
}

export interface OutboxDeps {
  readonly db: Kysely<Schema>;
  readonly webhook: Pick<Webhook, "post">;
  readonly customers: Pick<Customers, "of">;
  readonly clock: { now(): number };
  readonly log: Logger;
  /** For one delivery, ms. */
  readonly deadlineMs: number;
}

type Row = Selectable<OutboxTable>;

export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, clock, log } = deps;
  const held = new Set<number>();
  /** Event id → organisation and the delivery's promise (which never rejects). */
  const inFlight = new Map<string, { readonly organisation: string; readonly done: Promise<void> }>();
  let timer: NodeJS.Timeout | undefined;
  let looking: Promise<void> | null = null;
  let lookAgain = false;
  let stopped = false;
  let closed = false;

  return {
    hold(clientId) {
      held.add(clientId);
    },
    release(clientId) {
      held.delete(clientId);
      void look();
    },
    wake() {
      void look();
    },
    async stop(limitMs) {
      stopped = true;
      clearTimeout(timer);
      let late: NodeJS.Timeout | undefined;
      const limit = new Promise<void>((resolve) => {
        late = setTimeout(resolve, limitMs);
      });
      await Promise.race([flush(), limit]);
      clearTimeout(late);
      closed = true;
    },
    async depth() {
      const { events, oldest } = await db
        .selectFrom("outbox")
        .select((eb) => [eb.fn.countAll().as("events"), eb.fn.min("created_at").as("oldest")])
        .where("delivered_at", "is", null)
        .where("given_up_at", "is", null)
        .executeTakeFirstOrThrow();
      return { events: Number(events), oldestMs: oldest === null ? 0 : Math.max(0, clock.now() - Number(oldest)) };
    },
  };

  async function flush(): Promise<void> {
    do {
      await look();
      await Promise.all([...inFlight.values()].map((delivery) => delivery.done));
    } while (!closed && (looking !== null || inFlight.size > 0));
  }

  /** One look at a time; a wish for another during one is remembered. Never rejects. */
  function look(): Promise<void> {
    if (closed) return Promise.resolve();
    if (looking !== null) {
      lookAgain = true;
      return looking;
    }
    looking = (async () => {
      let pause: number;
      do {
        lookAgain = false;
        pause = await startDue().catch((err: unknown) => {
          log.error({ err }, "outbox could not be read");
          return STORE_FAILED_PAUSE_MS;
        });
      } while (lookAgain);
      looking = null;
      clearTimeout(timer);
      if (!stopped) timer = setTimeout(() => void look(), pause);
    })();
    return looking;
  }

  /** Starts every delivery that is due and has a place; returns ms until the next one is due. */
  async function startDue(): Promise<number> {
    const now = clock.now();
    for (const row of await due(now)) {
      if (inFlight.size >= IN_FLIGHT_LIMIT) break;
      if (held.has(Number(row.client_id)) || placesTaken(row.organisation_id) >= IN_FLIGHT_PER_ORGANISATION_LIMIT)
        continue;
      const done = deliver(row, now).finally(() => {
        inFlight.delete(row.id);
        void look();
      });
      inFlight.set(row.id, { organisation: row.organisation_id, done });
    }
    const next = await db
      .selectFrom("outbox")
      .select((eb) => eb.fn.min("next_attempt_at").as("at"))
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null)
      .where("next_attempt_at", ">", now)
      .executeTakeFirst();
    const wait = next?.at == null ? SLEEP_LIMIT_MS : Number(next.at) - now;
    return Math.min(Math.max(wait, 1), SLEEP_LIMIT_MS);
  }

  async function due(now: number): Promise<readonly Row[]> {
    let query = db
      .selectFrom("outbox")
      .selectAll()
      .where("delivered_at", "is", null)
      .where("given_up_at", "is", null)
      .where("next_attempt_at", "<=", now)
      .orderBy("next_attempt_at")
      .orderBy("client_id")
      .limit(IN_FLIGHT_LIMIT + held.size);
    const ids = [...inFlight.keys()];
    if (ids.length > 0) query = query.where("id", "not in", ids);
    const full = [...new Set([...inFlight.values()].map((delivery) => delivery.organisation))].filter(
      (organisation) => placesTaken(organisation) >= IN_FLIGHT_PER_ORGANISATION_LIMIT,
    );
    if (full.length > 0) query = query.where("organisation_id", "not in", full);
    return await query.execute();
  }

  function placesTaken(organisation: string): number {
    return [...inFlight.values()].filter((delivery) => delivery.organisation === organisation).length;
  }

  async function deliver(row: Row, now: number): Promise<void> {
    const clientId = Number(row.client_id);
    const attempts = Number(row.attempts) + 1;
    try {
      // Claimed before it is posted: a failing store stops deliveries instead of repeating them without end.
      const claim = { attempts, next_attempt_at: now + deps.deadlineMs };
      await db.updateTable("outbox").set(claim).where("id", "=", row.id).execute();
      const { keys } = await deps.customers.of(row.organisation_id);
      const answer = await deps.webhook.post({
        organisationId: row.organisation_id,
        url: row.url,
        id: row.id,
        body: Buffer.from(row.body, "latin1"),
        keys,
        deadlineMs: deps.deadlineMs,
        retryConnection: false,
        event: { call: "publish_done", clientId, name: nameIn(row.body), attempt: attempts },
      });
      await settle(row, attempts, answer);
    } catch (err) {
      log.error({ err, clientId }, "delivery of publish_done could not be recorded");
    }
  }

  async function settle(row: Row, attempts: number, answer: WebhookAnswer): Promise<void> {
    const now = clock.now();
    const clientId = Number(row.client_id);
    const verdict = judgeDelivery(answer, { attempts, createdAt: Number(row.created_at) }, now, Math.random());
    const last_status = answer.outcome === "answered" ? answer.status : null;
    if (verdict.next !== "delivered") {
      const cause = answer.outcome === "answered" ? undefined : answer.cause;
      log.warn({ clientId, attempts, status: last_status, cause, next: verdict.next }, "publish_done not delivered");
    }
    await db
      .updateTable("outbox")
      .set({
        last_status,
        attempts: wasTried(answer) ? attempts : attempts - 1,
        ...(verdict.next === "delivered" ? { delivered_at: now } : {}),
        ...(verdict.next === "given_up" ? { given_up_at: now } : {}),
        ...(verdict.next === "retry" ? { next_attempt_at: verdict.at } : {}),
      })
      .where("id", "=", row.id)
      .execute();
  }
}

/** Our fields come last, so the last `name` is the stream's. */
function nameIn(body: string): string {
  return new URLSearchParams(body).getAll("name").at(-1) ?? "";
}
