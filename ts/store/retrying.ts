// Transactions on PostgreSQL that behave as if each were alone, as they are in the embedded store: serializable, and
// tried again when the server had to give one up. What a transaction does must therefore be in the store only.
import { Kysely, type TransactionBuilder } from "kysely";
import { DatabaseError } from "pg";
import { StoreFailed } from "../errors.ts";

/** How often a transaction is tried; the later ones of a process go one after the other, so they seldom fail again. */
const ATTEMPTS_LIMIT = 12;
/** Pause before another try: random, and longer with each one, ms. */
const PAUSE_STEP_MS = 4;
/** SQLSTATE serialization_failure and deadlock_detected: nothing has happened, and the same may succeed now. */
const GIVEN_UP = new Set(["40001", "40P01"]);

export class RetryingKysely<DB> extends Kysely<DB> {
  /** The end of the last second try. */
  #last: Promise<unknown> = Promise.resolve();

  override transaction(): TransactionBuilder<DB> {
    const builder = super.transaction().setIsolationLevel("serializable");
    const once = builder.execute.bind(builder);
    builder.execute = async (callback) => {
      try {
        return await once(callback);
      } catch (error) {
        if (!wasGivenUp(error)) throw error;
      }
      return await this.#inTurn(() => again(() => once(callback)));
    };
    return builder;
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

async function again<T>(act: () => Promise<T>): Promise<T> {
  for (let attempt = 2; ; attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * PAUSE_STEP_MS * attempt));
    try {
      return await act();
    } catch (error) {
      if (attempt >= ATTEMPTS_LIMIT || !wasGivenUp(error)) throw error;
    }
  }
}

function wasGivenUp(error: unknown): boolean {
  return error instanceof StoreFailed && error.cause instanceof DatabaseError && GIVEN_UP.has(error.cause.code ?? "");
}
