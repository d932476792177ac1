// One moment after which a whole piece of work is over, however many waits it is made of.

/** Starts at once. `clear` it when the work is done: it holds a timer. */
export class Deadline {
  #over = false;
  readonly #told = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;

  constructor(ms: number) {
    this.#timer = setTimeout(() => {
      this.#over = true;
      for (const told of this.#told) told();
      this.#told.clear();
    }, ms);
  }

  get over(): boolean {
    return this.#over;
  }

  /** Calls `told` once when the time is over; never after `clear` or `forget`. */
  whenOver(told: () => void): void {
    this.#told.add(told);
  }

  forget(told: () => void): void {
    this.#told.delete(told);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#told.clear();
  }
}
