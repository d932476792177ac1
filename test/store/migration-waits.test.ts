// A migration that takes long: the service answers meanwhile, and an index is built without blocking writes, again when
// it was killed half-way.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { startingHealth } from "../../ts/http/health.ts";
import { MIGRATIONS, migrate } from "../../ts/store/migrations.ts";
import { openStore } from "../../ts/store/open.ts";
import { openPool, postgresDialect } from "../../ts/store/postgres.ts";
import { buildIndex } from "../../ts/store/tables/indexes.ts";
import { until } from "../support/child.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";

const PUBLISH_ASKED = MIGRATIONS.findIndex(({ name }) => name === "0021-publish-asked");

let server: PostgresServer;
let databaseUrl: string;
let db: Kysely<unknown>;
let other: Client;
let dataDir: string;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "headgate-migration-"));
  databaseUrl = await server.newDatabase();
  db = new Kysely({ dialect: postgresDialect(openPool(databaseUrl)) });
  other = new Client({ connectionString: databaseUrl });
  other.on("error", () => {});
  await other.connect();
});
afterEach(async () => {
  await other.end();
  await db.destroy();
  rmSync(dataDir, { recursive: true });
});

/** A transaction of somebody else, older than the index: a concurrent build waits for it. */
async function holdOn(): Promise<() => Promise<unknown>> {
  await other.query("set idle_in_transaction_session_timeout = 0");
  await other.query("begin isolation level repeatable read");
  await other.query("insert into sequence (name, next) values ('held', 1)");
  await other.query("update publish set bytes_in = 1 where false");
  return () => other.query("commit");
}
const isValid = async (name: string) =>
  (
    await sql<{ valid: number }>`select indisvalid as valid from pg_index
      where indexrelid = to_regclass(${name})`.execute(db)
  ).rows[0]?.valid ?? null;

test("while an index is built others write, and the opening says which migration it waits for", async () => {
  await migrate(db, { alone: true }, MIGRATIONS.slice(0, PUBLISH_ASKED));
  const release = await holdOn();
  const told: string[] = [];
  const opening = openStore({ dataDir, databaseUrl, migrating: (name) => told.push(name) });
  await until("the index is being built", async () => (await isValid("publish_asked")) === 0);
  expect(told).toEqual(["0021-publish-asked"]);
  const longWaits = sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where query ilike 'create index concurrently%' and query_start < clock_timestamp() - interval '6 s'`;
  const waits = async () => (await longWaits.execute(db)).rows[0]?.n === 1;
  await until("it has waited longer than the limit for locks of other statements", waits);
  const startedAt = performance.now();
  await sql`insert into organisation (id, hash, name, plan, enabled, created_at, updated_at)
    values ('o', 'Ab1Cd', 'Org', 'paid', 1, 0, 0)`.execute(db);
  await sql`insert into stream (id, organisation_id, name, state, tags, created_at, updated_at)
    values ('s', 'o', 'Ab1Cd-1', 'created', '[]', 0, 0)`.execute(db);
  await sql`insert into publish (client_id, organisation_id, stream_id, name, app, address, protocol, state, asked_at,
    bytes_in, bytes_out) values (1, 'o', 's', 'Ab1Cd-1', 'live', '', 'rtmp', 'ended', 0, 0, 0)`.execute(db);
  expect(performance.now() - startedAt).toBeLessThan(500);
  await release();
  const store = await opening;
  expect(await isValid("publish_asked")).toBe(1);
  expect(told.length).toBe(MIGRATIONS.length - PUBLISH_ASKED);
  await store.close();
}, 60_000);

test("an index whose build was killed half-way is built again", async () => {
  await migrate(db, { alone: true }, MIGRATIONS.slice(0, PUBLISH_ASKED));
  const release = await holdOn();
  const index = { name: "publish_asked", on: "publish (stream_id, asked_at, client_id)" };
  const killed = buildIndex(db, index).then(
    () => "built",
    () => "killed",
  );
  await until("the index is being built", async () => (await isValid("publish_asked")) === 0);
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where query like 'create index concurrently%' and pid <> pg_backend_pid()`.execute(db);
  expect(await killed).toBe("killed");
  await release();
  expect(await isValid("publish_asked")).toBe(0);
  const store = await openStore({ dataDir, databaseUrl });
  expect(await isValid("publish_asked")).toBe(1);
  await store.close();
  await buildIndex(db, index); // there already: nothing to do
}, 60_000);

test("a process that waits for another's migration does not stop that from building an index", async () => {
  await migrate(db, { alone: true }, MIGRATIONS.slice(0, PUBLISH_ASKED));
  const opening = ["a", "b", "c"].map((name) => openStore({ dataDir, databaseUrl, node: { name } }));
  const stores = await Promise.all(opening);
  expect(await isValid("publish_asked")).toBe(1);
  for (const store of stores) await store.close();
}, 60_000);

test("a process of the former version that waits for the migration does not fail it", async () => {
  await migrate(db, { alone: true }, MIGRATIONS.slice(0, PUBLISH_ASKED));
  const release = await holdOn();
  const opening = openStore({ dataDir, databaseUrl });
  await until("the index is being built", async () => (await isValid("publish_asked")) === 0);
  const former = new Client({ connectionString: databaseUrl });
  former.on("error", () => {});
  await former.connect();
  // Of the two it is always the build that the server ends.
  await former.query("set deadlock_timeout = '1h'");
  // As it waits: in a statement, which holds a snapshot.
  const waited = former.query("select pg_advisory_lock(4923002)").then(
    () => "locked",
    () => "given up",
  );
  await release();
  const store = await opening;
  expect(await isValid("publish_asked")).toBe(1);
  await former.query("select 1").catch(() => {});
  expect(["locked", "given up"]).toContain(await waited);
  await former.end();
  await store.close();
}, 60_000);

test("from its first moment on a start says that it is alive, and why it is not ready", async () => {
  const health = startingHealth("node-1");
  const asked = async (path: string) => {
    const response = await health.fetch(new Request(`http://node.example${path}`));
    return [response.status, await response.text()];
  };
  expect(await asked("/healthz")).toEqual([200, "ok, node node-1 is starting: opening the store\n"]);
  health.now("migrating the tables of the store (0021-publish-asked)");
  const reason = "starting: migrating the tables of the store (0021-publish-asked)";
  expect(await asked("/healthz")).toEqual([200, `ok, node node-1 is ${reason}\n`]);
  expect(await asked("/readyz")).toEqual([503, `not ready: ${reason}\n`]);
  expect((await asked("/metrics"))[0]).toBe(503);
});
