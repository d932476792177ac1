// Which other nodes are dead, by their signs of life in the store and a clock of our own that is never set: the nodes'
// clocks and the store's may say what they like.

/** A node that gives no sign of life for so long is dead to the others, ms. */
export const LEASE_MS = 10_000;
/** Between two signs of life, ms. */
export const BEAT_EVERY_MS = 2_000;
/** Whoever has not read the store for so long has been away, or the store has: nobody is dead by what was read before. */
const AWAY_AFTER_MS = 5_000;

/** A node as it was read. */
export interface Seen {
  readonly epoch: number;
  readonly beats: number;
}

export class Watch {
  /** Epoch → how many beats were read, and when they were new. */
  readonly #since = new Map<number, { readonly beats: number; readonly at: number }>();
  #readAt = Number.NEGATIVE_INFINITY;

  /** Takes what was read of the others at `at` (ms, never set back) and says which of them are dead. */
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
