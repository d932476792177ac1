// Two sizes of a run. `npm test` checks everything that must hold once, in minutes; `npm test -- --whole` adds longer
// tests of the same: other stores, other programs, larger numbers, longer waits.
import { describe, test } from "vitest";

/** Whether this is the run of all tests. */
export const isWholeRun = process.env.TEST_WHOLE === "yes";

/** A test that belongs to the whole run only; otherwise it counts as skipped. */
export const inWholeRun = test.runIf(isWholeRun);

/** Whether a suite on both stores runs on PostgreSQL, but not in the whole run. */
const isSecondTime = process.env.TEST_STORE === "postgres" && !isWholeRun;

/** For tests in such a suite that send both stores the same statements: in the whole run on both, otherwise on one. */
export const onOneStore = { describe: describe.skipIf(isSecondTime), test: test.skipIf(isSecondTime) };

/** Cases of one kind: all of them in the whole run, otherwise every `every`th, beginning with the first. */
export const casesOfRun = <Case>(cases: readonly Case[], every: number): readonly Case[] =>
  cases.filter((_, at) => isWholeRun || at % every === 0);

/** The stores of a test that is the same on both, by name: the embedded one and, in the whole run, PostgreSQL. */
export const storesOfRun = ["the embedded store", ...(isWholeRun ? ["PostgreSQL"] : [])];
