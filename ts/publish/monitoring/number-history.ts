// The last hour of one publish's numbers, a point every five seconds, in bounded memory.
import type { Numbers } from "./numbers.ts";

/** Between two points, ms. */
export const STEP_MS = 5_000;
/** Points kept: an hour. */
export const POINTS_LIMIT = 720;
/** Initial capacity in points; doubled up to the limit, so that short publishes cost little. */
const POINTS_FIRST = 45;
const NAMES = ["bitrateKbps", "fps", "gopMs", "lossPercent", "rttMs", "skewMs"] as const satisfies (keyof Numbers)[];

/** History points, each list of the same length; null where nothing was known. */
export interface History {
  /** Time of the first point, epoch ms; null while there is none. */
  readonly since: number | null;
  readonly points: { readonly [Name in keyof Numbers]: readonly (number | null)[] };
}

/** At most 17,280 bytes of numbers: six of four bytes for each of 720 points. */
export class NumberHistory {
  /** Consecutive points, the oldest at `#first`; NaN stands for null. */
  #ring = new Float32Array(POINTS_FIRST * NAMES.length);
  #first = 0;
  #count = 0;
  #since = 0;

  /** Adds the numbers of `at`, epoch ms. Missed points in between are null; a point that comes early replaces the one
   *  before. */
  add(at: number, numbers: Numbers): void {
    if (this.#count === 0) this.#since = at;
    const index = Math.round((at - this.#since) / STEP_MS);
    // The clock was set, or nothing came for an hour: the older points are discarded.
    if (index < this.#count - 1 || index >= this.#count + POINTS_LIMIT) {
      this.#count = 0;
      this.#since = at;
      this.#push(numbers);
      return;
    }
    if (index === this.#count - 1) this.#count -= 1;
    for (let missed = index - this.#count; missed > 0; missed -= 1) this.#push(null);
    this.#push(numbers);
  }

  read(): History {
    const list = (name: number) =>
      Array.from({ length: this.#count }, (_, index) => {
        const value = this.#ring[this.#at(index) + name] ?? Number.NaN;
        return Number.isNaN(value) ? null : Math.round(value * 10) / 10;
      });
    const lists = NAMES.map((name, index) => [name, list(index)] as const);
    return {
      since: this.#count === 0 ? null : this.#since,
      points: Object.fromEntries(lists) as Partial<History["points"]> as History["points"],
    };
  }

  #push(numbers: Numbers | null): void {
    if (this.#count === this.#capacity()) this.#makeRoom();
    const at = this.#at(this.#count);
    for (const [index, name] of NAMES.entries()) this.#ring[at + index] = numbers?.[name] ?? Number.NaN;
    this.#count += 1;
  }

  #makeRoom(): void {
    const capacity = this.#capacity();
    if (capacity >= POINTS_LIMIT) {
      this.#first = (this.#first + 1) % capacity;
      this.#count -= 1;
      this.#since += STEP_MS;
      return;
    }
    // A ring that was never full begins at index 0.
    const larger = new Float32Array(Math.min(capacity * 2, POINTS_LIMIT) * NAMES.length);
    larger.set(this.#ring);
    this.#ring = larger;
  }

  #capacity(): number {
    return this.#ring.length / NAMES.length;
  }

  #at(index: number): number {
    return ((this.#first + index) % this.#capacity()) * NAMES.length;
  }
}
