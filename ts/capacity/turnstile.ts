// Spreads the work of a crowd over turns of the event loop, so that other work runs in between.
import { PriorityQueue } from "./priority-queue.ts";

export class Turnstile {
  readonly #perTurn: number;
  readonly #pauseMs: number;
  readonly #waiting: PriorityQueue<() => void>;
  /** A turn is scheduled, or the pause after one is not over. */
  #isBusy = false;

  /** `perTurn`: how many are started in one turn; `levels`: priorities, of which 0 is the most urgent; `pauseMs`: the time
   *  between turns, for work whose cost comes later, with an answer: started at once, a crowd's answers would arrive in one
   *  turn. */
  constructor(
    perTurn: number,
    { levels = 1, pauseMs = 0 }: { readonly levels?: number; readonly pauseMs?: number } = {},
  ) {
    this.#perTurn = perTurn;
    this.#pauseMs = pauseMs;
    this.#waiting = new PriorityQueue(levels);
  }

  /** How many have not been started. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Calls `begin` in its turn: the most urgent first, and those of the same priority in order of arrival. It must not
   *  throw, and must be a function of its own for each call. */
  pass(begin: () => void, priority = 0): void {
    this.#waiting.add(begin, priority);
    this.#schedule();
  }

  /** `begin` is no longer wanted. False when it has been called. */
  leave(begin: () => void): boolean {
    return this.#waiting.delete(begin);
  }

  #schedule(): void {
    if (this.#isBusy || this.#waiting.size === 0) return;
    this.#isBusy = true;
    setImmediate(() => {
      for (let begun = 0; begun < this.#perTurn; begun += 1) this.#waiting.shift()?.();
      if (this.#pauseMs > 0) setTimeout(this.#afterTurn, this.#pauseMs);
      else this.#afterTurn();
    });
  }

  readonly #afterTurn = (): void => {
    this.#isBusy = false;
    this.#schedule();
  };
}
