// Writes refusals in the background, at most once a second and so many at a time: no request waits for it, and a flood
// costs the store what a few refusals cost. Streams that were not looked up before the refusal are looked up here.

import { type Kysely, sql } from "kysely";
import type { Logger } from "pino";
import { RecentMap } from "../../limits/recent-map.ts";
import { inPortions, PORTION, untaken } from "../../store/portions.ts";
import type { Schema } from "../../store/schema.ts";
import type { RefusalTable } from "../../store/tables/refusal-table.ts";
import { createPending, type PendingRefusal } from "./pending.ts";
import { createRefusalRows } from "./refusal-rows.ts";
import { streamsNamed } from "./stream-look-up.ts";

/** Rows of one organisation, and of all names that no stream has; beyond, the oldest are removed. */
export const ROWS_LIMIT = 50_000;
/** How many rows are added before that is checked again. */
const CHECK_AFTER = 500;
/** Organisations whose added rows are counted; the one counted first is evicted first, and checked again. */
const REMEMBERED_LIMIT = 10_000;
/** Pause between two writes, ms: after a success, and while the store fails. */
const WRITE_INTERVAL_MS = 1_000;
const RETRY_MS = 5_000;
/** Refusals in one write. */
const AT_A_TIME = 500;
/** Rows in one statement. */
const ROWS_PER_STATEMENT = 40;

export interface RefusalRecords {
  /** Returns immediately. */
  add(refusal: PendingRefusal): void;
  /** Writes what waits. Rejects when the store fails; nothing is lost then. */
  flush(): Promise<void>;
  /** Writes what waits, as far as the store allows, and no more after that. */
  stop(): Promise<void>;
}

export function createRefusalRecords(deps: {
  readonly db: Kysely<Schema>;
  /** For looking up streams. */
  readonly reads: Kysely<Schema>;
  readonly log: Logger;
  /** For tests; the limit above otherwise. */
  readonly rowsLimit?: number;
}): RefusalRecords {
  const { db, reads, log, rowsLimit = ROWS_LIMIT } = deps;
  const pending = createPending();
  const rows = createRefusalRows();
  /** By organisation: rows added since its limit was checked. */
  const added = new RecentMap<string, number>(REMEMBERED_LIMIT);
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();
  let stopped = false;

  return {
    add(refusal) {
      if (stopped) return;
      pending.add(refusal);
      writeSoon(WRITE_INTERVAL_MS);
    },
    async flush() {
      do await write();
      while (pending.size > 0);
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      try {
        do await write();
        while (pending.size > 0);
      } catch (err) {
        log.warn({ err, refusals: pending.size }, "refusals could not be recorded");
      }
    },
  };

  function writeSoon(afterMs: number): void {
    timer ??= setTimeout(async () => {
      let pauseMs = WRITE_INTERVAL_MS;
      try {
        await write();
      } catch (err) {
        pauseMs = RETRY_MS;
        log.warn({ err, refusals: pending.size }, "refusals could not be recorded, and wait");
      }
      timer = undefined;
      if (!stopped && pending.size > 0) writeSoon(pauseMs);
    }, afterMs).unref();
  }

  /** One write at a time. */
  function write(): Promise<void> {
    writing = writing.catch(() => {}).then(writeSome);
    return writing;
  }

  async function writeSome(): Promise<void> {
    const dropped = pending.dropped();
    if (dropped > 0) log.warn({ dropped }, "refusals not recorded: too many at a time");
    const taken = pending.take(AT_A_TIME);
    let known: readonly PendingRefusal[];
    try {
      known = await withStreams(reads, taken);
    } catch (error) {
      for (const refusal of taken) pending.add(refusal);
      throw error;
    }
    const left = [...rows.rowsOf(known)];
    try {
      while (left.length > 0) {
        await upsert(db, left.slice(0, ROWS_PER_STATEMENT));
        for (const { organisation_id } of left.splice(0, ROWS_PER_STATEMENT)) countAdded(organisation_id);
      }
    } catch (error) {
      for (const row of left) pending.add(refusalIn(row));
      throw error;
    }
    for (const [organisation, count] of added) if (count >= CHECK_AFTER) await makeRoom(organisation);
  }

  /** An organisation not counted yet may have too many from before. */
  function countAdded(organisation: string): void {
    const count = added.get(organisation) ?? CHECK_AFTER;
    added.set(organisation, count + 1);
  }

  async function makeRoom(organisation: string): Promise<void> {
    added.set(organisation, 0);
    const ofIt = db.selectFrom("refusal").where("organisation_id", "=", organisation);
    const first = await ofIt
      .select("first_at")
      .orderBy("first_at", "desc")
      .offset(rowsLimit)
      .limit(1)
      .executeTakeFirst();
    if (first === undefined) return;
    const oldest = ofIt.select("id").where("first_at", "<=", first.first_at).orderBy("first_at").limit(PORTION);
    await inPortions(
      async () => {
        const { numDeletedRows } = await db
          .deleteFrom("refusal")
          .where("id", "in", untaken(db, oldest))
          .executeTakeFirst();
        return Number(numDeletedRows);
      },
      () => stopped,
    );
  }
}

async function withStreams(
  reads: Kysely<Schema>,
  refusals: readonly PendingRefusal[],
): Promise<readonly PendingRefusal[]> {
  const names = new Set(refusals.flatMap(({ organisation, name }) => (organisation === null && name ? [name] : [])));
  const found = await streamsNamed(reads, names);
  return refusals.map((refusal) => {
    const known = refusal.organisation === null && refusal.name !== null ? found.get(refusal.name) : undefined;
    return known === undefined ? refusal : { ...refusal, ...known, name: null };
  });
}

/** In the order of ids, so that two nodes do not wait for each other. */
async function upsert(db: Kysely<Schema>, values: readonly RefusalTable[]): Promise<void> {
  await db
    .insertInto("refusal")
    .values(values.toSorted((one, other) => (one.id < other.id ? -1 : 1)))
    .onConflict((conflict) =>
      conflict.column("id").doUpdateSet({
        count: sql<number>`refusal.count + excluded.count`,
        last_at: sql<number>`case when excluded.last_at > refusal.last_at then excluded.last_at else refusal.last_at end`,
        detail: sql<string | null>`excluded.detail`,
      }),
    )
    .execute();
}

/** The refusal that is counted by a row that could not be written. */
function refusalIn(row: RefusalTable): PendingRefusal {
  const { request, protocol, reason, stream_id: stream, name, detail, address, count } = row;
  return {
    request,
    protocol,
    reason: reason as PendingRefusal["reason"],
    stream,
    name,
    detail,
    address,
    count,
    organisation: row.organisation_id || null,
    firstAt: row.first_at,
    lastAt: row.last_at,
  };
}
