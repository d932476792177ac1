// What was sent to customers and how they answered, for the developers of the customer's side: publish, publish_done,
// failures, and the latest update of each publish. Written after the calls, in the background; bounded in age and size.
// It is a log, not the outbox: a crash may lose its last second.
import { type CompiledQuery, type Kysely, sql } from "kysely";
import type { Logger } from "pino";
import { repeatedWarning } from "../../limits/repeated-warning.ts";
import { deliveryBytes, fullShareOf, oldestDeliveries } from "../../store/delivery-size.ts";
import { inPortions, PORTION } from "../../store/portions.ts";
import type { DeliveryTable, Schema } from "../../store/schema.ts";
import { together } from "../../store/statements/together.ts";
import type { WebhookAnswer } from "./answer.ts";
import type { WebhookCall } from "./call.ts";
import { type KeptResponse, responseText } from "./kept-response.ts";
import { wasTried } from "./outbox/retry-schedule.ts";

/** Total size of the rows of all organisations, bytes. Beyond it, the oldest of the organisation with the most are deleted;
 *  how long rows are kept otherwise is decided by the retention (store/retention.ts). */
export const DELIVERY_SIZE_LIMIT_BYTES = 1_000_000_000;
/** Total size of the rows of one organisation, bytes; beyond it, its oldest are deleted. */
export const ORGANISATION_SIZE_LIMIT_BYTES = 250_000_000;
/** Pause between two writes, ms. */
const WRITE_INTERVAL_MS = 1_000;
/** Entries that wait for the next write; further ones are dropped and counted. */
const WAITING_LIMIT = 10_000;
/** How many calls of one organisation that its gate refused a write includes: they are all alike. */
const UNTRIED_LIMIT = 10;
/** Rows in one statement: few enough for every store's limit of parameters. */
const ROWS_PER_STATEMENT = 25;
/** Size of a row in addition to its texts, indexes included, bytes. */
const ROW_BYTES = 400;
/** Statements that make room for one statement's rows: the largest rows may replace the smallest. */
const REMOVALS_LIMIT = 10;

/** The webhook, or the second one. */
type Receiver = "webhook" | "copies";

export interface DeliveryLog {
  /** Returns immediately. What arrives of the response later is added to the row. */
  note(call: WebhookCall, answer: WebhookAnswer, tookMs: number, response?: KeptResponse | null, to?: Receiver): void;
  /** Writes pending entries. Rejects when the store fails; nothing is lost then. */
  flush(): Promise<void>;
  /** Deletes what exceeds the limit after it was lowered or an upgrade, until `stop`. */
  prune(): Promise<void>;
  stop(): Promise<void>;
}

export function createDeliveryLog(deps: {
  readonly db: Kysely<Schema>;
  /** Epoch ms. */
  readonly clock: { now(): number };
  readonly log: Logger;
  /** For tests; the limits above otherwise. */
  readonly sizeLimitBytes?: number;
  readonly organisationLimitBytes?: number;
}): DeliveryLog {
  const { db, clock, log, sizeLimitBytes = DELIVERY_SIZE_LIMIT_BYTES } = deps;
  const { organisationLimitBytes = ORGANISATION_SIZE_LIMIT_BYTES } = deps;
  const sizes = { db, sizeLimitBytes, organisationLimitBytes };
  /** By webhook-id: a retry before the write replaces its entry. */
  let waiting = new Map<string, Entry>();
  /** Written rows whose response arrived completely after that. */
  let late: Entry[] = [];
  /** By receiver and organisation: pending calls that the gate refused. */
  const untried = new Map<string, number>();
  let dropped = 0;
  let writing: Promise<void> = Promise.resolve();
  let pruning: Promise<void> | null = null;
  let stopped = false;
  const warning = repeatedWarning(log, "delivery log could not be written");
  /** Runs while entries are pending. */
  let timer: NodeJS.Timeout | undefined;
  const writeSoon = () => {
    timer ??= setTimeout(async () => {
      await warning.around(flush);
      timer = undefined;
      if (!stopped && (waiting.size > 0 || late.length > 0 || dropped > 0)) writeSoon();
    }, WRITE_INTERVAL_MS).unref();
  };

  return {
    note(call, answer, tookMs, response = null, to = "webhook") {
      if (!wasTried(answer)) {
        const gate = `${to} ${call.organisationId}`;
        const before = untried.get(gate) ?? 0;
        if (before >= UNTRIED_LIMIT) return;
        untried.set(gate, before + 1);
      }
      if (waiting.size >= WAITING_LIMIT && !waiting.has(call.id)) dropped += 1;
      else waiting.set(call.id, { row: rowOf(call, answer, tookMs, to, clock.now()), response });
      writeSoon();
    },
    flush,
    prune,
    async stop() {
      stopped = true;
      clearTimeout(timer);
      await warning.around(() => pruning ?? Promise.resolve());
      await warning.around(flush);
    },
  };

  function flush(): Promise<void> {
    writing = writing.catch(() => {}).then(write);
    return writing;
  }

  async function write(): Promise<void> {
    if (dropped > 0) log.warn({ dropped }, "deliveries not logged: too many at a time");
    dropped = 0;
    await addLate();
    if (waiting.size === 0) return;
    const entries = withoutFormerUpdates([...waiting.values()]);
    waiting = new Map();
    untried.clear();
    try {
      // In portions: a publish that has to be recorded meanwhile waits for at most one of them.
      while (entries.length > 0) {
        const portion = entries.slice(0, ROWS_PER_STATEMENT);
        const rows = portion.map(withResponse);
        const open = portion.filter(({ response }) => response !== null && !response.isOver);
        await together(db, [...formerUpdates(db, rows), upsert(db, rows)]);
        entries.splice(0, portion.length);
        for (const entry of open) void entry.response?.over.then(() => noteLate(entry));
        await makeRoom(new Set(rows.map((row) => row.organisation_id)));
      }
    } catch (error) {
      // Newer entries of the same event win.
      waiting = new Map([...entries.map((entry) => [entry.row.id, entry] as const), ...waiting]);
      throw error;
    }
  }

  function noteLate(entry: Entry): void {
    if (late.length >= WAITING_LIMIT) return;
    late.push(entry);
    writeSoon();
  }

  /** A row that a newer attempt has replaced, or that is gone, stays as it is. */
  async function addLate(): Promise<void> {
    while (late.length > 0) {
      const portion = late.slice(0, ROWS_PER_STATEMENT);
      await together(
        db,
        portion.map((entry) => lateResponse(db, entry)),
      );
      late = late.slice(portion.length);
    }
  }

  async function makeRoom(organisations: ReadonlySet<string>): Promise<void> {
    for (let times = 0; times < REMOVALS_LIMIT; times += 1) {
      if (!(await removeOldest(sizes, [...organisations]))) return;
    }
  }

  function prune(): Promise<void> {
    // The organisation with the most bytes may have fewer rows than a portion, and another then has the most.
    const portion = async () => ((await removeOldest(sizes, null)) ? PORTION : 0);
    pruning ??= inPortions(portion, () => stopped)
      .then(() => {})
      .finally(() => {
        pruning = null;
      });
    return pruning;
  }
}

/** Sets the response of a row, unless a newer attempt has replaced it. */
function lateResponse(db: Kysely<Schema>, entry: Entry): CompiledQuery {
  const { id, attempts, last_at, response, bytes } = withResponse(entry);
  const row = db.updateTable("delivery").set({ response, bytes }).where("id", "=", id);
  return row.where("attempts", "=", attempts).where("last_at", "=", last_at).compile();
}

interface SizeLimits {
  readonly db: Kysely<Schema>;
  readonly sizeLimitBytes: number;
  readonly organisationLimitBytes: number;
}

/** Resolves with false when nothing was deleted: there are not too many, of all and of these
 *  organisations; null: of each. */
async function removeOldest(
  { db, sizeLimitBytes, organisationLimitBytes }: SizeLimits,
  organisations: readonly string[] | null,
): Promise<boolean> {
  const remove = async (from: string | null) =>
    Number((await db.executeQuery(oldestDeliveries(db, from))).numAffectedRows ?? 0) > 0;
  if ((await deliveryBytes(db)) > sizeLimitBytes) return await remove(null);
  const full = await fullShareOf(db, organisations, organisationLimitBytes);
  return full !== null && (await remove(full));
}

/** A row, and the response that belongs to it. */
interface Entry {
  readonly row: DeliveryTable;
  readonly response: KeptResponse | null;
}

function withResponse({ row, response }: Entry): DeliveryTable {
  if (response === null) return row;
  const text = responseText(response.read(), row);
  return { ...row, response: text, bytes: row.bytes + text.length };
}

const isGoodUpdate = (row: DeliveryTable) => row.call === "update_publish" && row.status === 200;
const updateKey = ({ client_id, is_copy }: DeliveryTable) => `${client_id} ${is_copy ?? ""}`;

/** Of successful updates only the latest of each publish and receiver is kept. */
function withoutFormerUpdates(entries: readonly Entry[]): Entry[] {
  const latest = new Map(entries.filter(({ row }) => isGoodUpdate(row)).map(({ row }) => [updateKey(row), row.id]));
  return entries.filter(({ row }) => !isGoodUpdate(row) || latest.get(updateKey(row)) === row.id);
}

function formerUpdates(db: Kysely<Schema>, rows: readonly DeliveryTable[]): CompiledQuery[] {
  return [null, 1].flatMap((isCopy) => {
    const clientIds = rows.filter((row) => isGoodUpdate(row) && row.is_copy === isCopy).map((row) => row.client_id);
    if (clientIds.length === 0) return [];
    const former = db
      .deleteFrom("delivery")
      .where("client_id", "in", clientIds)
      .where("call", "=", "update_publish")
      .where("status", "=", 200)
      .where("is_copy", isCopy === null ? "is" : "=", isCopy);
    return [former.compile()];
  });
}

function upsert(db: Kysely<Schema>, rows: DeliveryTable[]): CompiledQuery {
  const newer = (column: string) => sql.ref<never>(`excluded.${column}`);
  return db
    .insertInto("delivery")
    .values(rows)
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({
        url: newer("url"),
        outcome: newer("outcome"),
        status: newer("status"),
        reason: newer("reason"),
        latency_ms: newer("latency_ms"),
        attempts: newer("attempts"),
        last_at: newer("last_at"),
        response: newer("response"),
        bytes: newer("bytes"),
      }),
    )
    .compile();
}

function rowOf(call: WebhookCall, answer: WebhookAnswer, tookMs: number, to: Receiver, now: number): DeliveryTable {
  const body = Buffer.from(call.body).toString("latin1");
  const answered = answer.outcome === "answered" ? answer : null;
  const reason = answer.outcome === "answered" ? answer.reason : answer.detail;
  return {
    id: call.id,
    organisation_id: call.organisationId,
    client_id: call.event.clientId,
    call: call.event.call,
    name: call.event.name,
    url: call.url,
    body,
    outcome: answer.outcome === "answered" ? "answered" : answer.cause,
    status: answered?.status ?? null,
    reason,
    latency_ms: Math.round(tookMs),
    attempts: call.event.attempt,
    first_at: now,
    last_at: now,
    response: null,
    is_copy: to === "copies" ? 1 : null,
    bytes: ROW_BYTES + body.length + call.url.length + call.event.name.length + (reason?.length ?? 0),
  };
}
