// Schedules the one connection: single statements pass freely, a transaction has it alone. First come, first served.
import { StoreFailed } from "../../errors.ts";

/** How long a caller waits for a transaction before it fails, ms. */
export const TURN_LIMIT_MS = 10_000;

interface Waiting {
  readonly alone: boolean;
  readonly start: () => void;
  readonly timer: NodeJS.Timeout;
}

/** `start` runs immediately or when the transactions before it have ended, always in order of arrival. */
export class Turns {
  #taken = false;
  readonly #waiting: Waiting[] = [];

  /** Runs `start` when no transaction is open. `fail` is called instead when that takes too long. */
  pass(start: () => void, fail: (error: StoreFailed) => void): void {
    this.#queue(false, start, fail);
  }

  /** Like `pass`, but nothing else starts until `release`. */
  take(start: () => void, fail: (error: StoreFailed) => void): void {
    this.#queue(true, start, fail);
  }

  /** Ends the turn that `take` began. */
  release(): void {
    this.#taken = false;
    while (!this.#taken) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      clearTimeout(next.timer);
      this.#taken = next.alone;
      next.start();
    }
  }

  #queue(alone: boolean, start: () => void, fail: (error: StoreFailed) => void): void {
    if (!this.#taken) {
      this.#taken = alone;
      start();
      return;
    }
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      fail(new StoreFailed(`waited ${TURN_LIMIT_MS} ms for a transaction to end`));
    }, TURN_LIMIT_MS);
    const waiting: Waiting = { alone, start, timer };
    this.#waiting.push(waiting);
  }
}
