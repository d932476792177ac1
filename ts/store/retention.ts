// Deletes old data: publishes, personal data of denied ones, deliveries, the audit log, nodes. In portions along an
// index, with pauses, so that a publish request never waits for it.
import { type CompiledQuery, type Kysely, sql } from "kysely";
import type { Logger } from "pino";
import { inPortions, PORTION, untaken } from "./portions.ts";
import type { Schema } from "./schema.ts";
import { excessAudit } from "./table-bounds.ts";
import type { Index } from "./tables/indexes.ts";

/** Between two passes, and before the first one, ms: a clock that is set right meanwhile deletes nothing that is young. */
const PASS_EVERY_MS = 3_600_000;
const FIRST_PASS_MS = 600_000;
const DAY_MS = 86_400_000;

/** How long each kind is kept, days; 0: for ever. */
export interface RetentionDays {
  readonly publishes: number;
  readonly audit: number;
  /** Bodies of webhook calls, and events that the outbox has delivered or given up. */
  readonly deliveries: number;
  /** Addresses and custom arguments of denied publishes, which may contain pass codes, and other refusals. */
  readonly denied: number;
}

/** How long responses to requests with an Idempotency-Key are repeated, days (M17). */
export const KEPT_ANSWER_DAYS = 1;
/** How long the row of a node that died or was stopped is kept, days: as long as it is shown to people. */
const GONE_NODE_DAYS = 1;
/** How long a token is listed after it has expired, days. */
const EXPIRED_TOKEN_DAYS = 30;

/** One kind of data: the statement that deletes a portion of what is older than `before`, epoch ms. */
interface Kind {
  readonly name: string;
  /** A setting, or days. */
  readonly days: keyof RetentionDays | number;
  portion(db: Kysely<Schema>, before: number): CompiledQuery;
}

/** Each statement with the index it scans (migration 0008, except for refusals and the last three). */
export const KINDS: readonly Kind[] = [
  { name: "details of denied publishes", days: "denied", portion: deniedDetails },
  { name: "refusals", days: "denied", portion: refusals },
  { name: "publishes", days: "publishes", portion: publishes },
  { name: "deliveries", days: "deliveries", portion: deliveries },
  { name: "delivered events", days: "deliveries", portion: events("outbox", "delivered_at") },
  { name: "given up events", days: "deliveries", portion: events("outbox", "given_up_at") },
  { name: "delivered copies", days: "deliveries", portion: events("webhook_copy_outbox", "delivered_at") },
  { name: "given up copies", days: "deliveries", portion: events("webhook_copy_outbox", "given_up_at") },
  { name: "audit entries", days: "audit", portion: audit },
  { name: "kept answers", days: KEPT_ANSWER_DAYS, portion: keptAnswers },
  { name: "expired tokens", days: EXPIRED_TOKEN_DAYS, portion: expiredTokens },
  { name: "nodes that are gone", days: GONE_NODE_DAYS, portion: goneNodes },
];

/** Their publishes were taken over long before. By start time, which heartbeats do not change. */
function goneNodes(db: Kysely<Schema>, before: number): CompiledQuery {
  const old = db
    .selectFrom("node")
    .select("epoch")
    .where("started_at", "<", before)
    .where("state", "in", ["stopped", "lost"])
    .where("beat_at", "<", before)
    .orderBy("started_at")
    .limit(PORTION);
  return db.deleteFrom("node").where("epoch", "in", untaken(db, old)).compile();
}

function keptAnswers(db: Kysely<Schema>, before: number): CompiledQuery {
  const old = db
    .selectFrom("kept_answer")
    .select("id")
    .where("begun_at", "<", before)
    .orderBy("begun_at")
    .limit(PORTION);
  return db.deleteFrom("kept_answer").where("id", "in", untaken(db, old)).compile();
}

function expiredTokens(db: Kysely<Schema>, before: number): CompiledQuery {
  const old = db.selectFrom("token").select("id").where("expires_at", "<", before).orderBy("expires_at").limit(PORTION);
  return db.deleteFrom("token").where("id", "in", untaken(db, old)).compile();
}

function refusals(db: Kysely<Schema>, before: number): CompiledQuery {
  const age = sql<number>`(-first_at)`;
  const old = db
    .selectFrom("refusal")
    .select("id")
    .where(sql<boolean>`${age} > ${-before}`)
    .orderBy(age, "desc")
    .limit(PORTION);
  return db.deleteFrom("refusal").where("id", "in", untaken(db, old)).compile();
}

function publishes(db: Kysely<Schema>, before: number): CompiledQuery {
  const old = db
    .selectFrom("publish")
    .select("client_id")
    .where("ended_at", "<", before)
    .orderBy("ended_at")
    .limit(PORTION);
  return db.deleteFrom("publish").where("client_id", "in", untaken(db, old)).compile();
}

function deniedDetails(db: Kysely<Schema>, before: number): CompiledQuery {
  const old = db
    .selectFrom("publish")
    .select("client_id")
    .where("state", "=", "denied")
    .where("address", "<>", "")
    .where("ended_at", "<", before)
    .orderBy("ended_at")
    .limit(PORTION);
  return db
    .updateTable("publish")
    .set({ address: "", arguments: null })
    .where("client_id", "in", untaken(db, old))
    .compile();
}

function deliveries(db: Kysely<Schema>, before: number): CompiledQuery {
  const old = db.selectFrom("delivery").select("id").where("last_at", "<", before).orderBy("last_at").limit(PORTION);
  return db.deleteFrom("delivery").where("id", "in", untaken(db, old)).compile();
}

function events(table: "outbox" | "webhook_copy_outbox", done: "delivered_at" | "given_up_at"): Kind["portion"] {
  return (db, before) => {
    const old = db.selectFrom(table).select("id").where(done, "<", before).orderBy(done).limit(PORTION);
    return db.deleteFrom(table).where("id", "in", untaken(db, old)).compile();
  };
}

/** Ids ascend with time. */
function audit(db: Kysely<Schema>, before: number): CompiledQuery {
  const first = String(before).padStart(14, "0");
  const old = db.selectFrom("audit").select("id").where("id", "<", first).orderBy("id").limit(PORTION);
  return db.deleteFrom("audit").where("id", "in", untaken(db, old)).compile();
}

/** Migration 0008: the indexes that the statements above scan. */
export const RETENTION_INDEXES: readonly Index[] = [
  { name: "publish_ended", on: "publish (ended_at) where ended_at is not null" },
  { name: "publish_denied", on: "publish (ended_at) where state = 'denied' and address <> ''" },
  { name: "outbox_delivered", on: "outbox (delivered_at) where delivered_at is not null" },
  { name: "outbox_given_up", on: "outbox (given_up_at) where given_up_at is not null" },
];

/** One pass over everything; resolves with the number of rows changed. `isStopped` ends it between two statements. */
export async function prune(
  db: Kysely<Schema>,
  days: RetentionDays,
  now: number,
  isStopped: () => boolean = () => false,
): Promise<number> {
  const outdated = KINDS.flatMap((kind) => {
    const keep = typeof kind.days === "number" ? kind.days : days[kind.days];
    return keep === 0 ? [] : [kind.portion(db, now - keep * DAY_MS)];
  });
  let changed = 0;
  for (const statement of [...outdated, excessAudit(db)]) {
    const portion = async () => Number((await db.executeQuery(statement)).numAffectedRows ?? 0);
    changed += await inPortions(portion, isStopped);
  }
  return changed;
}

/** Prunes periodically until the returned function is called, by the earlier of the times of this pass and the last. */
export function keepPruned(deps: {
  readonly db: Kysely<Schema>;
  /** Asked before each pass. */
  readonly days: () => RetentionDays;
  readonly clock: { now(): number };
  readonly log: Logger;
  readonly firstPassMs?: number;
  readonly passEveryMs?: number;
}): () => Promise<void> {
  const { db, days, clock, log, firstPassMs = FIRST_PASS_MS, passEveryMs = PASS_EVERY_MS } = deps;
  let stopped = false;
  let running = Promise.resolve();
  let before = clock.now();
  const pass = () => {
    const now = clock.now();
    const earlier = Math.min(before, now);
    before = now;
    running = prune(db, days(), earlier, () => stopped)
      .then((rows) => {
        if (rows > 0) log.info({ rows }, "old records removed");
      })
      .catch((err: unknown) => log.warn({ err }, "old records could not be removed"))
      .finally(() => {
        if (!stopped) timer = setTimeout(pass, passEveryMs).unref();
      });
  };
  let timer = setTimeout(pass, firstPassMs).unref();
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await running;
  };
}
