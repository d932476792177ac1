// Whose reads a statement belongs to: the time it takes is charged to the account in whose context it runs.
import { AsyncLocalStorage } from "node:async_hooks";
import type { LogEvent } from "kysely";

export interface Account {
  /** Adds the time of a statement, ms. */
  charge(ms: number): void;
}

const accounts = new AsyncLocalStorage<Account>();

/** Runs `act`, whose statements are charged to `account`. */
export function chargedTo<T>(account: Account, act: () => Promise<T>): Promise<T> {
  return accounts.run(account, act);
}

/** For the `log` of a Kysely instance. */
export function chargeStatement({ queryDurationMillis }: LogEvent): void {
  accounts.getStore()?.charge(queryDurationMillis);
}
