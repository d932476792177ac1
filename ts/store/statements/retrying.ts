// Transactions on PostgreSQL that are isolated like those of the embedded store: serializable, and retried when the
// server aborts one. A transaction must therefore have no effects outside the store.
import { type CompiledQuery, type DatabaseConnection, Kysely, type TransactionBuilder } from "kysely";
import { DatabaseError } from "pg";
import { StoreFailed } from "../../errors.ts";
import { type Done, doneOf, offersTogether, type Together } from "./together.ts";

/** Most attempts of a transaction; retries of a process run one after another, so they seldom fail again. */
const ATTEMPTS_LIMIT = 12;
/** Pause before a retry: random, and longer with each attempt, ms. */
const PAUSE_STEP_MS = 4;
/** SQLSTATE serialization_failure and deadlock_detected: nothing was changed, and a retry may succeed. */
const GIVEN_UP = new Set(["40001", "40P01"]);

export class RetryingKysely<DB> extends Kysely<DB> implements Together {
  /** The end of the last retried transaction. */
  #last: Promise<unknown> = Promise.resolve();

  override transaction(): TransactionBuilder<DB> {
    const builder = super.transaction().setIsolationLevel("serializable");
    const once = builder.execute.bind(builder);
    builder.execute = (callback) => this.#retried(() => once(callback));
    return builder;
  }

  /** A statement alone is a transaction: the server needs not be told where it begins and ends. */
  async together(queries: readonly CompiledQuery[]): Promise<readonly Done[]> {
    const [only] = queries;
    if (only !== undefined && queries.length === 1) {
      return await this.#retried(async () => [doneOf(await this.executeQuery(only))]);
    }
    const once = () => this.getExecutor().provideConnection((connection) => asOne(connection, queries));
    return await this.#retried(once);
  }

  async #retried<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (!wasGivenUp(error)) throw error;
    }
    return await this.#inTurn(() => again(act));
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(act);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

function asOne(connection: DatabaseConnection, queries: readonly CompiledQuery[]): Promise<readonly Done[]> {
  if (!offersTogether(connection)) throw new TypeError("the connection runs one statement at a time");
  return connection.together(queries);
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
