// Bytes sent to players on this node for publishes that run on others: added to the publish's own bytes_out (W8) in the
// store, so that each byte counts once, where it was sent to a player.
import { type Kysely, PostgresAdapter, type RawBuilder, sql } from "kysely";
import type { Logger } from "pino";
import { untilTick } from "../../in-time.ts";
import { repeatedWarning } from "../../limits/repeated-warning.ts";
import type { PullStatus } from "../../media/plays.ts";
import type { Media } from "../../media.ts";
import type { Schema } from "../../store/schema.ts";
import { together } from "../../store/statements/together.ts";
import { dayOf } from "./daily-bytes.ts";

/** Pulls whose bytes are added in one statement: its parameters are limited. */
const PULLS_AT_A_TIME = 5_000;

/** Pause between two recordings, ms; after one that took long, as many times longer than that, so that the store has
 *  most of its time for publishes. */
const RECORD_EVERY_MS = 2_000;
const PAUSE_FACTOR = 20;
const PAUSE_LIMIT_MS = 30_000;

type Counted = Pick<PullStatus, "clientId" | "bytesOut">;

export interface PulledBytes {
  /** Writes what was added since the last call. Rejects with `StoreFailed`; the next call then includes it. */
  record(): Promise<void>;
  /** A pull has ended with these counters: writes them, or leaves them to `record` as above. */
  ended(pull: Counted): Promise<void>;
}

export function createPulledBytes(deps: {
  readonly db: Kysely<Schema>;
  readonly media: () => Pick<Media, "pulls">;
  readonly clock: { now(): number };
}): PulledBytes {
  const { db, media, clock } = deps;
  /** By client id: what its pull had sent when it was last read. */
  const read = new Map<number, number>();
  /** By client id: bytes that the store does not have yet. */
  const owed = new Map<number, number>();

  function owe(clientId: number, bytes: number): void {
    if (bytes !== 0) owed.set(clientId, (owed.get(clientId) ?? 0) + bytes);
  }

  function count({ clientId, bytesOut }: Counted): void {
    owe(clientId, bytesOut - (read.get(clientId) ?? 0));
    read.set(clientId, bytesOut);
  }

  async function write(): Promise<void> {
    while (owed.size > 0) {
      // In one order on every node, so that none waits for another in a circle.
      const portion = [...owed].sort(([one], [other]) => one - other).slice(0, PULLS_AT_A_TIME);
      for (const [clientId] of portion) owed.delete(clientId);
      try {
        const added = portion.map(([clientId, bytes]) => ({ clientId, bytes }));
        await addTo(db, added, clock.now());
      } catch (error) {
        for (const [clientId, bytes] of portion) owe(clientId, bytes);
        throw error;
      }
    }
  }

  return {
    async record() {
      media().pulls().forEach(count);
      await write();
    },
    async ended(pull) {
      count(pull);
      read.delete(pull.clientId);
      await write();
    },
  };
}

/** Calls `record` over and over, one at a time, whatever else this node does; the returned function stops it. */
export function keepRecorded(record: () => Promise<void>, log: Logger): () => Promise<void> {
  const warning = repeatedWarning(log, "bytes of pulled streams could not be recorded yet");
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let last = Promise.resolve();
  const wait = (tookMs: number) => {
    const pause = Math.min(Math.max(RECORD_EVERY_MS, PAUSE_FACTOR * tookMs), PAUSE_LIMIT_MS);
    if (!stopped) timer = setTimeout(next, untilTick(pause)).unref();
  };
  const next = () => {
    const begunAt = performance.now();
    last = warning.around(record).then(() => wait(performance.now() - begunAt));
  };
  wait(0);
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await last;
  };
}

interface Added {
  readonly clientId: number;
  readonly bytes: number;
}

/** Only while the publishes run: their publish_done report what was counted by then. */
async function addTo(db: Kysely<Schema>, added: readonly Added[], now: number): Promise<void> {
  const rows = sql.join(
    added.map(({ clientId, bytes }) => sql`(cast(${clientId} as bigint), cast(${bytes} as bigint))`),
  );
  // Both SQL dialects name the columns of a VALUES list this way.
  const usage = sql`
    insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out)
    select publish.stream_id, cast(${dayOf(now)} as text), publish.organisation_id, 0, cast(sum(added.column2) as bigint)
    from (values ${rows}) as added, publish
    where publish.client_id = added.column1 and publish.state = 'live'
    group by publish.stream_id, publish.organisation_id order by publish.stream_id
    on conflict (stream_id, day) do update set bytes_out = "usage".bytes_out + excluded.bytes_out
  `;
  const publishes = (condition: RawBuilder<unknown>) => sql`
    update publish set bytes_elsewhere = bytes_elsewhere + added.column2
    from (values ${rows}) as added
    where publish.client_id = added.column1 and publish.state = 'live' ${condition}
  `;
  if (!(db.getExecutor().adapter instanceof PostgresAdapter)) {
    await together(db, [usage.compile(db), publishes(sql``).compile(db)]);
    return;
  }
  // One statement, which no other transaction can make fail. First the usage, as everywhere: nobody waits in a circle.
  await sql`
    with used as (${usage} returning 1) ${publishes(sql`and (select count(*) from used) > 0`)}
  `.execute(db);
}
