// Signs of life wait for no other work of a node, and no update reaches past its lease.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { pino } from "pino";
import { afterAll, beforeAll, expect, type TestContext, test } from "vitest";
import { joinCluster } from "../../ts/cluster/membership.ts";
import { createPulledBytes } from "../../ts/publish/bytes/pulled-bytes.ts";
import { createUpdate } from "../../ts/publish/updates.ts";
import type { WebhookCall } from "../../ts/publish/webhook/call.ts";
import { openStore, type Store } from "../../ts/store/open.ts";
import { newTrace } from "../../ts/tracing/trace.ts";
import { until } from "../support/child.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";

const log = pino({ level: "silent" });
const NOTHING = { channel: null, http: null, rtmp: null, publishes: 0, load: 0 };
const NEVER = new Promise<never>(() => {});

let server: PostgresServer;
let store: Store;
let dataDir: string;
beforeAll(async () => {
  server = await startPostgres();
  dataDir = mkdtempSync(join(tmpdir(), "headgate-lifeline-"));
});
afterAll(async () => {
  await server.close();
  rmSync(dataDir, { recursive: true });
});

/** A store for one test. */
async function opened({ onTestFinished }: TestContext): Promise<void> {
  store = await openStore({ dataDir, databaseUrl: await server.newDatabase(), node: { name: "a" } });
  onTestFinished(() => store.close());
}

async function member(events: { readonly alive: () => Promise<void>; readonly gone: () => Promise<void> }) {
  const cluster = await joinCluster({ db: store.lifeline, name: "a", version: "test", log });
  cluster.start({ status: () => NOTHING, lost() {}, ...events });
  return cluster;
}
const beatsOf = async (epoch: number) => {
  const row = await store.lifeline.selectFrom("node").select("beats").where("epoch", "=", epoch).executeTakeFirst();
  return Number(row?.beats);
};

test("heartbeats go on while everything else of the node waits: requests to it, ends of others, every connection", async (context) => {
  await opened(context);
  // A node that is gone, which is noticed by its absence.
  await sql`insert into node (epoch, name, version, state, beats, beat_at, started_at, status)
    values (900, 'b', 'test', 'up', 1, 0, 0, ${JSON.stringify(NOTHING)})`.execute(store.db);
  let asked = 0;
  const cluster = await member({
    alive: () => NEVER,
    gone: () => {
      asked += 1;
      return NEVER;
    },
  });
  await sql`update node set state = 'stopped' where epoch = 900`.execute(store.db);
  await until("the ends of the other node are due", () => asked === 1);
  const busy = Array.from({ length: 30 }, () => sql`select pg_sleep(3)`.execute(store.db).catch(() => {}));
  const before = await beatsOf(cluster.epoch);
  await Promise.all(busy);
  expect((await beatsOf(cluster.epoch)) - before).toBeGreaterThanOrEqual(2);
  expect(cluster.sureForMs()).toBeGreaterThan(0);
  await cluster.leave();
}, 60_000);

test("bytes of two thousand pulls are recorded in one statement, once each", async (context) => {
  await opened(context);
  await sql`insert into organisation (id, hash, name, plan, enabled, created_at, updated_at)
    values ('o', 'Ab1Cd', 'Org', 'paid', 1, 0, 0)`.execute(store.db);
  await sql`insert into stream (id, organisation_id, name, state, tags, created_at, updated_at)
    values ('s', 'o', 'Ab1Cd-1', 'live', '[]', 0, 0)`.execute(store.db);
  await sql`insert into publish (client_id, organisation_id, stream_id, name, app, address, protocol, state, asked_at,
    bytes_in, bytes_out) select i, 'o', 's', 'Ab1Cd-1', 'live', '', 'rtmp', 'live', 0, 0, 0
    from generate_series(1, 2000) as i`.execute(store.db);
  let bytesOut = 10;
  const pulls = () => Array.from({ length: 2_000 }, (_, at) => ({ clientId: at + 1, bytesOut }) as never);
  const recorded = createPulledBytes({ db: store.db, media: () => ({ pulls }), clock: { now: () => 0 } });
  const startedAt = performance.now();
  await recorded.record();
  console.log(`2,000 pulls: ${Math.round(performance.now() - startedAt)} ms`);
  bytesOut = 25;
  await recorded.record();
  await recorded.record();
  await recorded.ended({ clientId: 7, bytesOut: 30 });
  const sums = async (table: string, column: string) =>
    Number(
      (await sql<{ sum: number }>`select sum(${sql.ref(column)}) as sum from ${sql.table(table)}`.execute(store.db))
        .rows[0]?.sum,
    );
  expect(await sums("publish", "bytes_elsewhere")).toBe(2_000 * 25 + 5);
  expect(await sums("usage", "bytes_out")).toBe(2_000 * 25 + 5);
}, 60_000);

test.each([
  { sureForMs: Number.POSITIVE_INFINITY, deadlineMs: 5_000 },
  { sureForMs: 9_000, deadlineMs: 5_000 },
  { sureForMs: 3_000, deadlineMs: 2_000 },
  { sureForMs: 1_200, deadlineMs: null },
  { sureForMs: 0, deadlineMs: null },
])(
  "an update of a node that is sure for $sureForMs ms ends before that, and costs the customer nothing",
  async (of) => {
    const calls: WebhookCall[] = [];
    const ended: string[] = [];
    const settings = {
      update_fields: [],
      update_max_unreachable: 1,
      update_reject_after: 1,
      reason_to_broadcaster: true,
    };
    const publish = {
      clientId: 1,
      organisationId: "o",
      url: "https://customer.example/",
      trace: newTrace(),
    };
    const update = createUpdate(
      { ...publish, name: "Ab1Cd-1", app: "live", address: "192.0.2.1", arguments: null } as never,
      {
        media: () => ({ snapshot: () => ({ timestampMs: 1 }), whipDiagnostics: () => null }) as never,
        member: { sureForMs: () => of.sureForMs },
        end: ({ code }) => ended.push(code),
        webhook: {
          async post(call) {
            calls.push(call);
            return { outcome: "unreachable", cause: "timeout", detail: "" } as never;
          },
        },
        customers: { of: async () => ({ keys: [], settings, webhook: publish.url }) as never },
        ...{ log, deadlineMs: 5_000 },
      },
    );
    const next = await update();
    expect(calls.map(({ deadlineMs }) => deadlineMs)).toEqual(of.deadlineMs === null ? [] : [of.deadlineMs]);
    // A whole deadline without an answer counts; one that the lease has cut short does not.
    expect([next, ended]).toEqual(of.deadlineMs === 5_000 ? ["stop", ["update_unanswered"]] : ["continue", []]);
  },
);
