// Detects dead nodes, by their heartbeats in the store and this node's monotonic clock: the time of day on the nodes
// and on the store does not matter.

/** A node without a heartbeat for this long is declared dead, ms. */
export const LEASE_MS = 10_000;
/** Interval of heartbeats, ms. */
export const BEAT_EVERY_MS = 2_000;
/** After this long without reading the store, either this node or the store was unavailable: earlier readings are then
 *  no evidence that a node is dead. */
const AWAY_AFTER_MS = 5_000;

/** A node as read from the store. */
export interface Seen {
  readonly epoch: number;
  readonly beats: number;
}

export class Watch {
  /** Epoch → the number of heartbeats read, and when it last changed. */
  readonly #since = new Map<number, { readonly beats: number; readonly at: number }>();
  #readAt = Number.NEGATIVE_INFINITY;

  /** When the next lease after `now` ends, unless a further sign of life is read before; Infinity if there is none. */
  nextEndAfter(now: number): number {
    const ends = [...this.#since.values()].map(({ at }) => at + LEASE_MS);
    return Math.min(...ends.filter((at) => at > now));
  }

  /** Takes what was read of the others at `at` (ms, monotonic) and returns those that are dead. */
  read<Other extends Seen>(others: readonly Other[], at: number): readonly Other[] {
    if (at - this.#readAt > AWAY_AFTER_MS) this.#since.clear();
    this.#readAt = at;
    const present = new Set(others.map(({ epoch }) => epoch));
    for (const epoch of this.#since.keys()) if (!present.has(epoch)) this.#since.delete(epoch);
    const dead: Other[] = [];
    for (const other of others) {
      const known = this.#since.get(other.epoch);
      if (known?.beats !== other.beats) this.#since.set(other.epoch, { beats: other.beats, at });
      else if (at - known.at >= LEASE_MS) dead.push(other);
    }
    return dead;
  }
}
