// A token bucket that allows bursts of three seconds' worth. The caller supplies the time.

/** A burst is this many seconds' worth. */
const BURST_S = 3;

/** A token bucket: `perSecond` on average, three seconds' worth in a burst. */
export class Bucket {
  readonly #perSecond: number;
  #tokens: number;
  #at: number;

  constructor(perSecond: number, now: number) {
    this.#perSecond = perSecond;
    this.#tokens = perSecond * BURST_S;
    this.#at = now;
  }

  /** Takes one token: null on success, else the whole seconds until one is available. */
  take(now: number): number | null {
    const gained = (Math.max(0, now - this.#at) / 1_000) * this.#perSecond;
    this.#tokens = Math.min(this.#perSecond * BURST_S, this.#tokens + gained);
    this.#at = now;
    if (this.#tokens < 1) return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perSecond));
    this.#tokens -= 1;
    return null;
  }
}
