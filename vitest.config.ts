// Tests run real programs, so only a few files run concurrently. Files of one project share worker processes,
// so that most of them find the gateway already loaded. `npm test -- --whole` runs everything; without it, files whose
// behaviour is covered elsewhere in less time are excluded (test/support/whole-run.ts).
import { defineConfig } from "vitest/config";

const isWholeRun = process.env.TEST_WHOLE === "yes";
/** Concurrent files. They spend most of their time waiting, so two cores can run more than two of them. */
const WORKERS = 5;
/** No test is retried: one that fails occasionally has found a fault. `npm test` counts retries
 *  (scripts/test.mjs). */
const common = {
  pool: "forks",
  testTimeout: 60_000,
  hookTimeout: 120_000,
  retry: 0,
  // Concurrent tests of one file. The command line's flag does not apply to projects.
  maxConcurrency: Number(process.env.TEST_CONCURRENCY ?? 5),
} as const;
/** Where a file lies says how it runs, in every room (CONTRIBUTING.md, "Tests"). */
const IN_WHOLE_RUN = "test/**/whole/*.test.ts";
/** Browsers that broadcast: two cores can run only two of these files concurrently. */
const WITH_BROWSER = "test/**/browsers/**/*.test.ts";
/** They need an idle machine, and run last: on a busy one a browser reduces the size of 720p, and a decision is late. */
const ALONE = "test/**/alone/**/*.test.ts";
/** Suites that also run on PostgreSQL: where it differs most from the embedded store; in the whole run nearly every
 *  suite that uses a store. */
const ON_BOTH_STORES = isWholeRun ? "test/**/{stores,either-store}/*.test.ts" : "test/**/stores/*.test.ts";

/** Files excluded from a run that is not the whole one. */
const leftOut = isWholeRun ? [] : [IN_WHOLE_RUN];

/** Files of a project of their own, at most `maxWorkers` concurrently. */
const apart = (name: string, include: string, maxWorkers: number, groupOrder: number) => ({
  test: { ...common, name, include: [include], exclude: leftOut, isolate: false, maxWorkers, sequence: { groupOrder } },
});

export default defineConfig({
  test: {
    globalSetup: ["test/support/temporary-folders.ts", "test/support/store-of-run.ts"],
    projects: [
      {
        test: {
          ...common,
          name: "together",
          include: ["test/**/*.test.ts"],
          exclude: [ALONE, WITH_BROWSER, ...leftOut],
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: "on PostgreSQL",
          include: [ON_BOTH_STORES],
          env: { TEST_STORE: "postgres" },
          globalSetup: "test/support/postgres-of-run.ts",
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      apart("browsers", WITH_BROWSER, 2, 1),
      apart("alone", ALONE, 1, 2),
    ],
  },
});
