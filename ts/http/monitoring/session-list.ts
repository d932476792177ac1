// The running publishes of an organisation as events, for one group of readers with the same view.
import type { Kysely } from "kysely";
import { streamsWithTag } from "../../organisation/reads/stream-list.ts";
import type { Schema } from "../../store/schema.ts";
import { Channel, eventText } from "./channel.ts";
import { changeOf, type LiveRow, type RowChange } from "./live-row.ts";
import { type ChangedStream, countStreams, type StreamCounts } from "./stream-changes.ts";

/** The state known to readers that are up to date. */
interface Picture {
  at: number;
  counts: StreamCounts;
  rows: ReadonlyMap<number, LiveRow>;
}

export class SessionList {
  readonly channel: Channel;
  readonly #db: Kysely<Schema>;
  readonly #organisationId: string;
  /** Only streams with this tag are visible; null: all. */
  readonly #tag: string | null;
  #picture: Picture | null = null;
  /** Of the streams with publishes, and of those that changed: ids of the ones with the tag; null: all. */
  #visible: ReadonlySet<string> | null = null;

  constructor(db: Kysely<Schema>, organisationId: string, tag: string | null) {
    this.#db = db;
    this.#organisationId = organisationId;
    this.#tag = tag;
    this.channel = new Channel(() => (this.#picture === null ? null : wholeOf(this.#picture)));
  }

  /** Sends what is new. `rows`: the organisation's; `changed`: its streams that changed since the last call. */
  async send(at: number, rows: readonly LiveRow[], changed: readonly ChangedStream[]): Promise<void> {
    const before = this.#picture;
    const isFirst = before === null;
    if (this.#tag !== null && (isFirst || changed.length > 0)) {
      const ids = new Set([...rows.map(({ stream }) => stream), ...changed.map(({ id }) => id)]);
      this.#visible = await streamsWithTag(this.#db, this.#organisationId, this.#tag, [...ids]);
    }
    const counts =
      isFirst || changed.length > 0 ? await countStreams(this.#db, this.#organisationId, this.#tag) : before.counts;
    const seen = rows.filter(({ stream }) => this.#sees(stream)).map((row) => [row.client_id, row] as const);
    this.#picture = { at, counts, rows: new Map(seen) };
    if (isFirst) return this.channel.tellLate();
    const streams = changed.filter(({ id }) => this.#sees(id));
    const text = changesOf(before, this.#picture, streams);
    if (text !== null) this.channel.send(text);
  }

  #sees(stream: string): boolean {
    return this.#visible === null || this.#visible.has(stream);
  }
}

function wholeOf({ at, counts, rows }: Picture): string {
  return eventText("sessions", { at, counts, sessions: [...rows.values()] });
}

/** null when nothing has changed. */
function changesOf(before: Picture, now: Picture, streams: readonly ChangedStream[]): string | null {
  const changed: RowChange[] = [];
  for (const [clientId, row] of now.rows) {
    const known = before.rows.get(clientId);
    const change = known === undefined ? row : changeOf(known, row);
    if (change !== null) changed.push(change);
  }
  const gone = [...before.rows.keys()].filter((clientId) => !now.rows.has(clientId));
  const isCounted = JSON.stringify(before.counts) !== JSON.stringify(now.counts);
  if (changed.length + gone.length + streams.length === 0 && !isCounted) return null;
  const counts = isCounted ? { counts: now.counts } : {};
  return eventText("changes", { at: now.at, ...counts, changed, gone, streams });
}
