// Tests run real programs: few at a time. Files of one project follow each other in the same processes, so that most find
// the gateway loaded. What needs the machine for itself comes last, one by one. `npm test -- --whole` runs everything;
// without it, files whose subject others show in less time stay out (test/support/whole-run.ts).
import { defineConfig } from "vitest/config";

const isWholeRun = process.env.TEST_WHOLE === "yes";
/** Files at the same time: they wait for most of their time. */
const WORKERS = 4;
/** No test is tried again: one that is red now and then has found something. `npm test` counts (scripts/test.mjs). */
const common = {
  pool: "forks",
  testTimeout: 60_000,
  hookTimeout: 120_000,
  retry: 0,
  // Of one file's concurrent tests. The command line's flag does not reach projects.
  maxConcurrency: Number(process.env.TEST_CONCURRENCY ?? 5),
} as const;
/** What must hold on PostgreSQL as on the embedded store, where the two differ most: these run there as well. */
const stores = [
  "store-statements",
  "store-migrations",
  "management-{keys,streams}",
  "publish-{sessions,withdrawn}",
  "stream-lists",
  "events",
  "outbox-order",
  "client-ids",
  "token-revocation",
  "retention",
  "delivery-log",
];
/** And in the whole run every suite that stands on a store, but those that are about the embedded one's files and those
 *  that only pass it by. */
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
  "stream-lists",
  "timeline",
  "events",
  "events-readers",
  "deployment",
  "outbox-{turns,order}",
  "client-ids",
  "secret-box",
  "route-{audit,tenants}",
  "retention",
  "delivery-log",
  "pruning",
  "webhook-{management,settings,url}",
  "whip-{denials,token}",
  "handover",
];
/** Of the whole run only: what is packed and installed, and what the same browsers, nodes and programs show elsewhere. */
const wholeRun = [
  "release-packages",
  "container-image",
  "debian-package",
  "runtimes",
  "runtimes-postgres",
  "client-package",
  "terminal-signals",
  "cluster-{script,costs}",
  "store-failover-live",
  "dashboard-{looks,organisation,webhook,load}",
  "management-schemathesis",
  "survival-browser",
  "whip-clients-browser",
  "v5-load",
].map((name) => `test/${name}.test.ts`);
/** Browsers that broadcast: two files of them at a time are all that two cores bear. */
const browsers = [
  "webcaster-{live,docs}",
  "broadcast-page",
  "dashboard-live",
  "v5-rtc-user",
  "whip-end",
  "survival-browser",
].map((name) => `test/${name}.test.ts`);
/** A browser that encodes 720p shrinks its picture when others take its time, and a decision comes late. */
const alone = [
  "whip-publish",
  "whip-clients-browser",
  "whip-switch",
  "dashboard-load",
  "v5-load",
  "webhook-deadline",
].map((name) => `test/${name}.test.ts`);

/** Of a run that is not the whole one. */
const leftOut = isWholeRun ? [] : wholeRun;

/** Files in processes of their own, so many at a time. */
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
          maxWorkers: WORKERS / 2,
          sequence: { groupOrder: 1 },
        },
      },
      apart("browsers", browsers, 2, 2),
      apart("alone", alone, 1, 3),
    ],
  },
});
