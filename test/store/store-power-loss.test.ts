// The primary of the store loses power, or a firewall forgets its connections: packets vanish and nothing is closed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startSilentProxy } from "../../bench/_silent-proxy.mjs";
import { openStore, type Store } from "../../ts/store/open.ts";
import { pause } from "../support/pause.ts";
import { startPostgres } from "../support/postgres.ts";
import { startPostgresPair } from "../support/postgres-pair.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

const PROMISED_MS = 2_000;

let dataDir: string;
const closings: (() => unknown)[] = [];
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "headgate-power-"));
});
afterEach(async () => {
  for (const close of closings.splice(0).reverse()) await close();
  rmSync(dataDir, { recursive: true });
});

const write = ({ db }: Store, name: string) => db.insertInto("sequence").values({ name, next: 1 }).execute();
const rest = (ms: number) => pause(ms); // how long a connection rests is what is tested
async function timeOf(work: Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work.catch(() => {});
  return performance.now() - startedAt;
}

/** A store behind one proxy for each server. */
async function behind(folders: readonly string[], database: string) {
  const proxies = await Promise.all(folders.map((folder) => startSilentProxy(join(folder, ".s.PGSQL.5432"))));
  for (const proxy of proxies) closings.push(() => proxy.close());
  const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join();
  const url = `postgres://postgres@${hosts}/${database}`;
  const store = await openStore({ dataDir, databaseUrl: url, node: { name: "a" } });
  closings.push(() => store.close());
  return { store, proxies, url };
}
const databaseOf = (url: string) => new URL(url).pathname.slice(1);

const RESTS = [
  { before: "an idle connection", restMs: 1_500 },
  { before: "a connection that was used a moment ago", restMs: 0 },
];

test.each(casesOfRun(RESTS, 2))(
  "after the promotion the first statement is answered within two seconds, with $before",
  async ({ restMs }) => {
    const pair = await startPostgresPair();
    closings.push(() => pair.close());
    const database = databaseOf(await pair.newDatabase());
    const { store, proxies } = await behind([pair.primary.folder, pair.standby.folder], database);
    await Promise.all(["a", "b", "c"].map((name) => write(store, name)));
    proxies[0]?.silence();
    await pair.primary.crash("SIGKILL");
    await pair.standby.promote();
    await rest(restMs);
    const tookMs = await timeOf(write(store, "first"));
    const { db } = store;
    const again = await timeOf(sql`select 1`.execute(db));
    console.log(`first statement ${Math.round(tookMs)} ms, second ${Math.round(again)} ms after the promotion`);
    expect(tookMs).toBeLessThan(PROMISED_MS);
    expect(again).toBeLessThan(500);
    await write(store, "second");
    // The name moves to the new primary by itself: an upgrade can rename the node.
    await store.rename("a@1");
    await store.rename("a");
    const locks = await sql`select 1 from pg_locks where locktype = 'advisory'`.execute(db);
    expect(locks.rows).toHaveLength(2);
  },
  120_000,
);

inWholeRun(
  "a statement under way when the power goes fails within two seconds of the promotion",
  async () => {
    const pair = await startPostgresPair();
    closings.push(() => pair.close());
    const database = databaseOf(await pair.newDatabase());
    const { store, proxies } = await behind([pair.primary.folder, pair.standby.folder], database);
    await write(store, "before");
    proxies[0]?.silence();
    const under = write(store, "under way").then(
      () => "kept",
      () => "failed",
    );
    await pair.primary.crash("SIGKILL");
    await pair.standby.promote();
    const startedAt = performance.now();
    expect(await under).toBe("failed");
    expect(performance.now() - startedAt).toBeLessThan(PROMISED_MS);
    await write(store, "after");
  },
  120_000,
);

test("connections that a firewall has forgotten are replaced, and the node keeps its name", async () => {
  const server = await startPostgres();
  closings.push(() => server.close());
  const database = databaseOf(await server.newDatabase());
  const { store, proxies, url } = await behind([server.folder], database);
  let lost = false;
  void store.failed.then(() => {
    lost = true;
  });
  await write(store, "before");
  await rest(1_200);
  proxies[0]?.forget();
  const tookMs = await timeOf(write(store, "after"));
  expect(tookMs).toBeLessThan(PROMISED_MS);
  expect(await timeOf(store.rename("a@1"))).toBeLessThan(5_000);
  await store.rename("a");
  expect(lost).toBe(false);
  await expect(openStore({ dataDir, databaseUrl: url, node: { name: "a" } })).rejects.toThrow(/in use/);
}, 60_000);

test("a statement that waits for a lock on a server that answers is not given up", async () => {
  const server = await startPostgres();
  closings.push(() => server.close());
  const { store } = await behind([server.folder], databaseOf(await server.newDatabase()));
  const { rows } = await sql<{ slept: string }>`select pg_sleep(3)::text as slept`.execute(store.db);
  expect(rows).toHaveLength(1);
}, 60_000);
