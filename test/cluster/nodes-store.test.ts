// What several nodes on one database share and count together, each case with concurrent actions.
import { sql } from "kysely";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { recordChange } from "../../ts/organisation/audit.ts";
import { ensureFirstOrganisation, ensureFirstPerson } from "../../ts/organisation/organisations.ts";
import { addUsage } from "../../ts/publish/bytes/daily-bytes.ts";
import { createClientIds } from "../../ts/publish/client-ids.ts";
import type { WebhookCall } from "../../ts/publish/webhook/call.ts";
import { createDeliveryLog } from "../../ts/publish/webhook/delivery-log.ts";
import { deliveryBytes } from "../../ts/store/delivery-size.ts";
import { prune } from "../../ts/store/retention.ts";
import { together } from "../../ts/store/statements/together.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { databasesWithTables } from "../support/stores.ts";
import { type Node, type Nodes, openNodes } from "../support/two-nodes.ts";

const DAY_MS = 86_400_000;
const DAYS = { publishes: 90, audit: 400, deliveries: 30, denied: 7 };
const silent = pino({ level: "silent" });

let server: PostgresServer;
let newDatabase: () => Promise<string>;
let nodes: Nodes;

beforeAll(async () => {
  server = await startPostgres();
  newDatabase = await databasesWithTables(server);
});
afterAll(() => server.close());
beforeEach(async () => {
  nodes = await openNodes(await newDatabase());
});
afterEach(() => nodes.close());

/** Two nodes and the administrator's key. */
async function two(): Promise<{ readonly both: readonly [Node, Node]; readonly one: Node; readonly key: string }> {
  const both = [await nodes.add(), await nodes.add()] as const;
  const [one] = both;
  const first = await ensureFirstOrganisation(one.db, null, nodes.clock.ms);
  return { both, one, key: first.outcome === "created" ? (first.key ?? "") : "" };
}
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const isUnique = (values: readonly unknown[]) => new Set(values).size === values.length;
const organisationOf = ({ db }: Node) => db.selectFrom("organisation").selectAll().executeTakeFirstOrThrow();

test("three nodes that start on an empty database create one organisation, one administrator and one key, each shown once", async () => {
  await nodes.close();
  nodes = await openNodes(await server.newDatabase());
  const started = await Promise.all(
    many(3, async () => {
      const node = await nodes.add();
      const first = await ensureFirstOrganisation(node.db, null, nodes.clock.ms);
      const password = await ensureFirstPerson(node.db, null, nodes.clock.ms);
      return { node, key: first.outcome === "created" ? first.key : null, password };
    }),
  );
  const keys = started.flatMap(({ key }) => key ?? []);
  const passwords = started.flatMap(({ password }) => password ?? []);
  expect([keys.length, passwords.length]).toEqual([1, 1]);
  for (const { node } of started) {
    expect((await node.call("GET", "/organisation", { key: keys[0] ?? "" })).status).toBe(200);
    const body = { email: "admin", password: passwords[0] };
    expect((await node.call("POST", "/login", { body })).status).toBe(200);
  }
  const { db } = (started[0] as (typeof started)[0]).node;
  for (const [table, rows] of [
    ["organisation", 1],
    ["person", 1],
    ["api_key", 1],
    ["token_key", 2],
  ] as const) {
    expect([table, (await db.selectFrom(table).selectAll().execute()).length]).toEqual([table, rows]);
  }
});

test("requests with one Idempotency-Key that reach both nodes are executed once", async () => {
  const { both, one, key } = await two();
  for (let round = 0; round < 5; round += 1) {
    const headers = { "idempotency-key": `round ${round}` };
    const post = (at: number) => (both[at % 2] as Node).call("POST", "/stream", { key, headers });
    const answers = await Promise.all(many(8, post));
    const done = answers.filter(({ status }) => status === 200);
    expect(done.length).toBeGreaterThan(0);
    // A request that arrives while the first one runs is told to retry.
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true);
    const again = await Promise.all(many(2, post));
    expect(again.map(({ headers: said }) => said.get("idempotency-replayed"))).toEqual(["true", "true"]);
    const ids = [...done, ...again].map(({ body }) => (body as { id: string }).id);
    expect(new Set(ids).size).toBe(1);
  }
  expect(await one.db.selectFrom("stream").select("id").execute()).toHaveLength(5);
});

test("client ids of both are different, and increase on each", async () => {
  const { both } = await two();
  const issued = await Promise.all(
    both.map(async ({ db }) => {
      const ids = createClientIds(db);
      const own: number[] = [];
      for (let at = 0; at < 2_500; at += 1) own.push(await ids.next());
      return own;
    }),
  );
  expect(isUnique(issued.flat())).toBe(true);
  for (const own of issued) expect(own).toEqual([...own].sort((a, b) => a - b));
});

test("audit entries of both have different ids, which increase with time", async () => {
  const { both, one } = await two();
  const organisation = await organisationOf(one);
  const actor = { organisation, who: { kind: "operator", id: null }, requestId: null } as const;
  for (let ms = 0; ms < 5; ms += 1) {
    const now = nodes.clock.ms + ms;
    const note = (at: number) =>
      recordChange((both[at % 2] as Node).db, actor, now, { action: "stream.create", subject: `${ms}` });
    await Promise.all(many(40, note));
  }
  const entries = await one.db.selectFrom("audit").select(["id", "at"]).orderBy("id").execute();
  expect(entries).toHaveLength(200);
  expect(entries.map(({ at }) => at)).toEqual(entries.map(({ at }) => at).sort((a, b) => a - b));
});

test("the recorded size of the delivery log is that of its rows, whichever node writes and removes", async () => {
  const { both, one } = await two();
  const organisation = await organisationOf(one);
  const logs = both.map(({ db }) => createDeliveryLog({ db, clock: nodes.clock, log: silent, sizeLimitBytes: 60_000 }));
  const answer = { outcome: "answered", status: 200, reason: null, retryAfter: null } as const;
  for (let round = 0; round < 4; round += 1) {
    for (const [node, log] of logs.entries()) {
      for (let at = 0; at < 40; at += 1) log.note(callOf(organisation.id, `${node}_${round}_${at}`), answer, 1);
    }
    await Promise.all(logs.map((log) => log.flush()));
    nodes.clock.ms += 1;
  }
  await Promise.all(logs.map((log) => log.stop()));
  const { bytes } = await one.db
    .selectFrom("delivery")
    .select((eb) => eb.fn.sum<number>("bytes").as("bytes"))
    .executeTakeFirstOrThrow();
  expect(await deliveryBytes(one.db)).toBe(Number(bytes));
  expect(Number(bytes)).toBeGreaterThan(0);
  expect(Number(bytes)).toBeLessThanOrEqual(60_000);
});

test("bytes that both count for one stream and day are added", async () => {
  const { both, one, key } = await two();
  const stream = (await one.call("POST", "/stream", { key })).body as { id: string };
  const organisation = await organisationOf(one);
  await one.db
    .insertInto("publish")
    .values(many(20, (at) => publishRow(at + 1, organisation.id, stream.id, {})))
    .execute();
  await Promise.all(
    many(20, async (at) => {
      const { db } = both[at % 2] as Node;
      for (const bytes of [1_000, 2_500]) {
        const counters = { clientId: at + 1, bytesIn: bytes, bytesOut: 2 * bytes, whose: sql<boolean>`true` };
        const publish = db.updateTable("publish").set({ bytes_in: bytes, bytes_out: 2 * bytes });
        await together(db, [addUsage(db, counters, nodes.clock.ms), publish.where("client_id", "=", at + 1).compile()]);
      }
    }),
  );
  const usage = await one.db.selectFrom("usage").select(["bytes_in", "bytes_out"]).execute();
  expect(usage).toEqual([{ bytes_in: 50_000, bytes_out: 100_000 }]);
});

test("old records that both remove at the same moment are removed once, without an error", async () => {
  const { both, one, key } = await two();
  const stream = (await one.call("POST", "/stream", { key })).body as { id: string };
  const organisation = await organisationOf(one);
  const old = { state: "ended", ended_at: nodes.clock.ms - 100 * DAY_MS } as const;
  const rows = many(300, (at) => publishRow(at + 1, organisation.id, stream.id, old));
  await one.db.insertInto("publish").values(rows).execute();
  await one.db
    .insertInto("delivery")
    .values(many(300, (at) => deliveryRow(at, organisation.id)))
    .execute();
  const removed = await Promise.all(both.map(({ db }) => prune(db, DAYS, nodes.clock.ms)));
  expect(removed.reduce((sum, each) => sum + each, 0)).toBe(600);
  // Neither waited for the other to finish.
  for (const each of removed) expect(each).toBeGreaterThan(0);
  expect(await one.db.selectFrom("publish").select("client_id").execute()).toEqual([]);
  expect(await deliveryBytes(one.db)).toBe(0);
});

function callOf(organisationId: string, id: string): WebhookCall {
  const event = { call: "publish", clientId: 1, name: "Ab1Cd-x", attempt: 1 } as const;
  const request = { url: "https://customer.example/", body: Buffer.from("x".repeat(100)), keys: [], deadlineMs: 1 };
  return { organisationId, id, event, ...request, retryConnection: false };
}

function publishRow(
  client_id: number,
  organisation_id: string,
  stream_id: string,
  more: { readonly state?: "ended"; readonly ended_at?: number },
) {
  const about = { client_id, organisation_id, stream_id, name: "Ab1Cd-x", app: "live", arguments: null, address: "" };
  const life = { state: "live" as const, asked_at: 0, accepted_at: 0, ended_at: null, end_reason: null, ...more };
  return { ...about, protocol: "rtmp" as const, webhook: null, bytes_in: 0, bytes_out: 0, ...life };
}

function deliveryRow(at: number, organisation_id: string) {
  const about = { id: `old_${at}`, organisation_id, client_id: at, call: "publish" as const, name: "Ab1Cd-x" };
  const said = { url: "https://customer.example/", body: "", outcome: "answered" as const, status: 200, reason: null };
  return { ...about, ...said, latency_ms: 1, attempts: 1, first_at: 0, last_at: 0, bytes: 500 };
}
