// The live publishes of the organisation from the event stream: one signal per stream, so that a row of the list is
// rendered again only when its own numbers changed.
import { computed, type Signal, signal } from "@preact/signals";
import type { Counts, LiveRow, StreamState } from "./records.ts";

/** The event `sessions`: the complete state. */
export interface WholePicture {
  readonly at: number;
  readonly counts: Counts;
  readonly sessions: readonly LiveRow[];
}

/** The event `changes`: the differences since the previous event. */
export interface Changes {
  readonly at: number;
  readonly counts?: Counts;
  readonly changed: readonly ({ readonly client_id: number } & Partial<LiveRow>)[];
  readonly gone: readonly number[];
  readonly streams: readonly { readonly id: string; readonly state: StreamState }[];
}

export class LiveRows {
  readonly counts = signal<Counts | null>(null);
  /** One publish of each live stream: the one on air. */
  readonly onAir = computed(() => {
    this.#version.value;
    return [...this.#newestOf(this.streams()).values()];
  });
  /** Increases with every change. */
  readonly #version = signal(0);
  /** By client id. */
  readonly #rows = new Map<number, LiveRow>();
  /** By stream; only those that were requested or are live. */
  readonly #signals = new Map<string, Signal<LiveRow | null>>();

  /** The publish of a stream that is on air; null while there is none. */
  of(stream: string): Signal<LiveRow | null> {
    const known = this.#signals.get(stream);
    if (known !== undefined) return known;
    const made = signal<LiveRow | null>(null);
    this.#signals.set(stream, made);
    return made;
  }

  /** Ids of the streams that are live. */
  streams(): ReadonlySet<string> {
    return new Set([...this.#rows.values()].map(({ stream }) => stream));
  }

  /** Replaces everything known so far. */
  replace({ counts, sessions }: WholePicture): void {
    this.counts.value = counts;
    const before = this.streams();
    this.#rows.clear();
    for (const row of sessions) this.#rows.set(row.client_id, row);
    this.#show(new Set([...before, ...sessions.map(({ stream }) => stream)]));
  }

  change({ counts, changed, gone }: Pick<Changes, "counts" | "changed" | "gone">): void {
    if (counts !== undefined) this.counts.value = counts;
    const touched = new Set<string>();
    for (const part of changed) {
      const before = this.#rows.get(part.client_id);
      // A new row is complete; a partial one of an unknown publish is ignored.
      if (before === undefined && part.stream === undefined) continue;
      const row = { ...before, ...part } as LiveRow;
      this.#rows.set(row.client_id, row);
      touched.add(row.stream);
    }
    for (const clientId of gone) {
      const row = this.#rows.get(clientId);
      if (row === undefined) continue;
      this.#rows.delete(clientId);
      touched.add(row.stream);
    }
    this.#show(touched);
  }

  /** Beside the one on air there may be one on standby. One that is being replaced may still be listed: the
   *  newest is used. */
  #newestOf(streams: ReadonlySet<string>): ReadonlyMap<string, LiveRow> {
    const newest = new Map<string, LiveRow>();
    for (const row of this.#rows.values()) {
      if (!streams.has(row.stream)) continue;
      const other = newest.get(row.stream);
      if (other === undefined || isBefore(other, row)) newest.set(row.stream, row);
    }
    return newest;
  }

  #show(streams: ReadonlySet<string>): void {
    const newest = this.#newestOf(streams);
    this.#version.value += 1;
    for (const stream of streams) {
      const row = newest.get(stream) ?? null;
      if (row === null && !this.#signals.has(stream)) continue;
      this.of(stream).value = row;
    }
  }
}

function isBefore(one: LiveRow, other: LiveRow): boolean {
  return one.on_air === other.on_air ? one.client_id < other.client_id : other.on_air;
}
