// One point in time that ends a whole piece of work, however many waits it consists of.

/** Starts immediately. Call `clear` when the work is done: it holds a timer. */
export class Deadline {
  #over = false;
  readonly #told = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #lastLook: NodeJS.Immediate | undefined;

  constructor(ms: number) {
    // After a pause of the process timers run before sockets are read: what arrived meanwhile is not late.
    this.#timer = setTimeout(() => {
      this.#lastLook = setImmediate(() => this.#end());
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
    clearImmediate(this.#lastLook);
    this.#told.clear();
  }

  #end(): void {
    this.#over = true;
    for (const told of this.#told) told();
    this.#told.clear();
  }
}
