// Spreads the work of a crowd over turns of the event loop, so that other work runs in between.

export class Turnstile {
  readonly #perTurn: number;
  readonly #waiting: (() => void)[] = [];
  #isScheduled = false;

  /** `perTurn`: how many are started in one turn. */
  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  /** How many have not been started. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Calls `begin` in its turn, in order of arrival. It must not throw. */
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
