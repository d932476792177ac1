// Tests run real programs, so only a few files run concurrently. Files of one project share worker processes,
// so that most of them find the gateway already loaded. Files that need an idle machine run last, one by one.
// `npm test -- --whole` runs everything; without it, files whose behaviour is covered elsewhere in less time
// are excluded (test/support/whole-run.ts).
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
/** Suites that also run on PostgreSQL: where it differs most from the embedded store. */
const stores = [
  "store-statements",
  "store-migrations",
  "management-{keys,streams}",
  "publish-{sessions,withdrawn}",
  "stream-{lists,titles}",
  "large-organisation",
  "events",
  "outbox-order",
  "table-bounds",
  "client-ids",
  "token-revocation",
  "refusals",
  "refusal-bounds",
  "retention",
  "delivery-log",
];
/** In the whole run every suite that uses a store, except those about the embedded one's files and
 *  those that hardly use it. */
const allStores = [
  "store-statements",
  "store-migrations",
  "management",
  "management-{audit,envelope,keys,once,pages,people,roles,streams,upstreams}",
  "client",
  "request-rate",
  "webcaster",
  "token-{rotation,revocation,vectors}",
  "publish-{lifecycle,admission,sessions,stopped,history,withdrawn}",
  "stream-{lists,titles}",
  "large-organisation",
  "timeline",
  "events",
  "events-readers",
  "deployment",
  "outbox-{turns,order}",
  "client-ids",
  "secret-box",
  "identity-provider",
  "route-{audit,tenants}",
  "refusals",
  "refusal-bounds",
  "retention",
  "delivery-log",
  "pruning",
  "webhook-{management,settings,url}",
  "whip-{denials,token}",
  "handover",
  "succession",
];
/** Only in the whole run: packages and installations, and behaviour that other suites cover with the same
 *  browsers, nodes and programs. */
const wholeRun = [
  "release-packages",
  "container-image",
  "debian-package",
  "runtimes",
  "runtimes-postgres",
  "client-package",
  "terminal-signals",
  "rehearse",
  "cluster-{script,costs}",
  "store-failover-live",
  "dashboard-{looks,organisation,webhook,load}",
  "management-schemathesis",
  "survival-browser",
  "whip-clients-browser",
  "v5-load",
].map((name) => `test/${name}.test.ts`);
/** Browsers that broadcast: two cores can run only two of these files concurrently. */
const browsers = [
  "webcaster-{live,docs,overlaps}",
  "broadcast-{devices,page}",
  "dashboard-live",
  "v5-rtc-user",
  "the-end",
  "whip-end",
  "survival-browser",
].map((name) => `test/${name}.test.ts`);
/** On a busy machine a browser that encodes 720p reduces its size, and a decision is late. */
const alone = [
  "whip-publish",
  "whip-clients-browser",
  "whip-{clocks,switch}",
  "dashboard-load",
  "v5-load",
  "webhook-deadline",
].map((name) => `test/${name}.test.ts`);

/** Files excluded from a run that is not the whole one. */
const leftOut = isWholeRun ? [] : wholeRun;

/** Files in processes of their own, at most `maxWorkers` concurrently. */
const apart = (name: string, include: string[], maxWorkers: number, groupOrder: number) => ({
  test: { ...common, name, include, exclude: leftOut, maxWorkers, sequence: { groupOrder } },
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
          exclude: [...alone, ...browsers, ...leftOut],
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: "on PostgreSQL",
          include: (isWholeRun ? allStores : stores).map((name) => `test/${name}.test.ts`),
          env: { TEST_STORE: "postgres" },
          globalSetup: "test/support/postgres-of-run.ts",
          isolate: false,
          maxWorkers: WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      apart("browsers", browsers, 2, 1),
      apart("alone", alone, 1, 2),
    ],
  },
});
