// One point in time that ends a whole piece of work, however many waits it consists of.

/** Starts immediately. Call `clear` when the work is done: it holds a timer. */
export class Deadline {
  #over = false;
  readonly #endsAt: number;
  readonly #callbacks = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;
  #lastTurn: NodeJS.Immediate | undefined;

  constructor(ms: number) {
    this.#endsAt = performance.now() + ms;
    // After a pause of the process timers run before sockets are read: what arrived meanwhile is not late.
    this.#timer = setTimeout(() => {
      this.#lastTurn = setImmediate(() => this.#end());
    }, ms);
  }

  /** Whether the time is over even if the event loop was too busy to notice: what has not begun by then must not begin. */
  get hasPassed(): boolean {
    return this.#over || performance.now() >= this.#endsAt;
  }

  /** Calls `callback` once when the time is over; never after `clear` or `forget`. */
  whenOver(callback: () => void): void {
    this.#callbacks.add(callback);
  }

  forget(callback: () => void): void {
    this.#callbacks.delete(callback);
  }

  clear(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#lastTurn);
    this.#callbacks.clear();
  }

  #end(): void {
    this.#over = true;
    for (const callback of this.#callbacks) callback();
    this.#callbacks.clear();
  }
}
