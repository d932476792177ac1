// Two sizes of a run. `npm test` shows everything that must hold once, in minutes; `npm test -- --whole` adds the tests of
// the same that take longer: other stores, other programs, larger numbers, longer waits.
import { test } from "vitest";

/** Whether this is the run of every test. */
export const isWholeRun = process.env.TEST_WHOLE === "yes";

/** A test that belongs to the whole run only; in the other it counts as skipped. */
export const inWholeRun = test.runIf(isWholeRun);

/** Cases of one kind: all of them in the whole run, in the other each `every`th, from the first on. */
export const casesOfRun = <Case>(cases: readonly Case[], every: number): readonly Case[] =>
  cases.filter((_, at) => isWholeRun || at % every === 0);

/** The stores of a test that is the same on both, by name: the embedded one, and PostgreSQL in the whole run. */
export const storesOfRun = ["the embedded store", ...(isWholeRun ? ["PostgreSQL"] : [])];
