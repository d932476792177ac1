// How many events wait in an outbox, for metrics and the operator's page.
import type { Kysely } from "kysely";
import type { Schema } from "../../../store/schema.ts";

/** Events for the webhook, and for the second one, which gets copies. */
export type OutboxName = "outbox" | "webhook_copy_outbox";
export const OUTBOXES: readonly OutboxName[] = ["outbox", "webhook_copy_outbox"];

/** Events counted; larger numbers are reported as this one. */
const COUNTED_LIMIT = 10_000;

/** Events neither delivered nor given up, and the age of the oldest. */
export interface OutboxDepth {
  readonly events: number;
  readonly oldestMs: number;
}

/** How many events wait, at most `COUNTED_LIMIT`, and since when the oldest: read from the index alone. */
export function waitingEvents(db: Kysely<Schema>, table: OutboxName = "outbox") {
  const oldest = db
    .selectFrom(table)
    .select("created_at")
    .where("delivered_at", "is", null)
    .where("given_up_at", "is", null)
    .orderBy("created_at")
    .limit(COUNTED_LIMIT);
  return db
    .selectFrom(oldest.as("waiting"))
    .select((eb) => [eb.fn.countAll().as("events"), eb.fn.min("created_at").as("oldest")]);
}

/** `now`: epoch ms. */
export async function outboxDepth(db: Kysely<Schema>, now: number, table?: OutboxName): Promise<OutboxDepth> {
  const { events, oldest } = await waitingEvents(db, table).executeTakeFirstOrThrow();
  return { events: Number(events), oldestMs: oldest === null ? 0 : Math.max(0, now - Number(oldest)) };
}
