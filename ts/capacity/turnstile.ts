// Work of a crowd, a little in each turn of the event loop: everybody else comes between.

export class Turnstile {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** `perTurn`: how many are begun in one turn. */
  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** What has not begun. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Calls `begin` in its turn, in the order of asking. It must not throw. */
  pass(begin: () => void): void {
    this.#waiting.push(begin);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      for (const begin of this.#waiting.splice(0, this.#perTurn)) begin();
      this.#schedule();
    });
  }
}
