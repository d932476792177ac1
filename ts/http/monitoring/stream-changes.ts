// Finds the streams of an organisation that have changed, by polling the store: other processes change them too.
import type { Kysely } from "kysely";
import { countsOf } from "../../organisation/reads/stream-list.ts";
import type { Schema, StreamState } from "../../store/schema.ts";

/** A change is written some time after its timestamp: polls overlap by this, ms. */
const OVERLAP_MS = 5_000;
/** Changed streams returned by one poll; further ones follow with the next polls. */
const ROWS_LIMIT = 1_000;
/** Streams of a tag that are counted, the newest. */
export const COUNTED_LIMIT = 10_000;
export const COUNTED_STATES = ["created", "live", "ended", "locked"] as const satisfies readonly StreamState[];

export interface ChangedStream {
  readonly id: string;
  readonly state: StreamState;
}

export type StreamCounts = Readonly<Record<(typeof COUNTED_STATES)[number], number>>;

/** Finds changes from `since` on, epoch ms. */
export class StreamChanges {
  readonly #db: Kysely<Schema>;
  readonly #organisationId: string;
  #since: number;
  /** Streams returned within the overlap: stream id → timestamp and state. */
  readonly #known = new Map<string, { readonly at: number; readonly state: StreamState }>();

  constructor(db: Kysely<Schema>, organisationId: string, since: number) {
    this.#db = db;
    this.#organisationId = organisationId;
    this.#since = since;
  }

  /** The streams that changed since the last poll, including those of which only the tags changed. */
  async poll(now: number): Promise<readonly ChangedStream[]> {
    const rows = await this.#db
      .selectFrom("stream")
      .select(["id", "state", "updated_at"])
      .where("organisation_id", "=", this.#organisationId)
      .where("updated_at", ">=", this.#since - OVERLAP_MS)
      .orderBy("updated_at")
      .limit(ROWS_LIMIT)
      .execute();
    const last = rows.at(-1);
    // A clock that was set back does not stop the polling.
    this.#since = rows.length === ROWS_LIMIT && last !== undefined ? Number(last.updated_at) + OVERLAP_MS : now;
    const changed = rows.filter(({ id, state, updated_at }) => {
      const known = this.#known.get(id);
      return known === undefined || known.at !== Number(updated_at) || known.state !== state;
    });
    for (const [id, { at }] of this.#known) if (at < this.#since - OVERLAP_MS) this.#known.delete(id);
    for (const { id, state, updated_at } of changed) this.#known.set(id, { at: Number(updated_at), state });
    return changed.map(({ id, state }) => ({ id, state }));
  }
}

/** How many streams are in each state; `tag`: only those with it, of which the newest are counted. */
export async function countStreams(
  db: Kysely<Schema>,
  organisationId: string,
  tag: string | null,
): Promise<StreamCounts> {
  const rows = await (tag === null ? countsOf(db, [organisationId]) : countsWithTag(db, organisationId, tag));
  const of = (state: StreamState) => Number(rows.find((row) => row.state === state)?.streams ?? 0);
  return { created: of("created"), live: of("live"), ended: of("ended"), locked: of("locked") };
}

async function countsWithTag(db: Kysely<Schema>, organisationId: string, tag: string) {
  const newest = db
    .selectFrom("stream_tag")
    .select("stream_id")
    .where("organisation_id", "=", organisationId)
    .where("tag", "=", tag)
    .orderBy("age")
    .limit(COUNTED_LIMIT)
    .as("newest");
  return await db
    .selectFrom(newest)
    .innerJoin("stream", "stream.id", "newest.stream_id")
    .select((eb) => ["state", eb.fn.countAll<number>().as("streams")])
    .groupBy("state")
    .execute();
}
