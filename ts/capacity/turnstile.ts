// Spreads the work of a crowd over turns of the event loop, so that other work runs in between.

export class Turnstile {
  readonly #perTurn: number;
  readonly #pauseMs: number;
  readonly #waiting: (() => void)[] = [];
  /** A turn is scheduled, or the pause after one is not over. */
  #isBusy = false;

  /** `perTurn`: how many are started in one turn; `pauseMs`: the time between turns, for work whose cost comes later,
   *  with an answer: started at once, a crowd's answers would arrive in one turn. */
  constructor(perTurn: number, pauseMs = 0) {
    this.#perTurn = perTurn;
    this.#pauseMs = pauseMs;
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
    if (this.#isBusy || this.#waiting.length === 0) return;
    this.#isBusy = true;
    setImmediate(() => {
      for (const begin of this.#waiting.splice(0, this.#perTurn)) begin();
      if (this.#pauseMs > 0) setTimeout(this.#afterTurn, this.#pauseMs);
      else this.#afterTurn();
    });
  }

  readonly #afterTurn = (): void => {
    this.#isBusy = false;
    this.#schedule();
  };
}
