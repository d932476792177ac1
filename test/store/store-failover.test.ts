// A store on a primary and its standby: it follows the promotion, and does not use a former primary.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { databaseServers } from "../../ts/cli/doctor/database-servers.ts";
import { openStore, type Store } from "../../ts/store/open.ts";
import { until } from "../support/child.ts";
import { asked } from "../support/postgres.ts";
import { type PostgresPair, startPostgresPair } from "../support/postgres-pair.ts";

let pair: PostgresPair;
let dataDir: string;
let databaseUrl: string;
const open: Store[] = [];

beforeAll(async () => {
  pair = await startPostgresPair();
});
afterAll(() => pair.close());
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "headgate-failover-"));
  databaseUrl = await pair.newDatabase();
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  rmSync(dataDir, { recursive: true });
});

async function opened(url = databaseUrl): Promise<Store> {
  const store = await openStore({ dataDir, databaseUrl: url });
  open.push(store);
  return store;
}
const write = ({ db }: Store, name: string) => db.insertInto("sequence").values({ name, next: 1 }).execute();
const isDone = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  );
const names = async ({ db }: Store) =>
  (await db.selectFrom("sequence").select("name").orderBy("name").execute()).map(({ name }) => name);
/** The server that a store's connections lead to. */
async function placeOf({ db }: Store): Promise<"primary" | "standby"> {
  const { rows } = await sql<{ folder: string }>`select current_setting('unix_socket_directories') as folder`.execute(
    db,
  );
  return rows[0]?.folder === pair.primary.folder ? "primary" : "standby";
}
const withHosts = (...hosts: string[]) => {
  const url = new URL(databaseUrl);
  url.searchParams.set("host", hosts.join());
  return url.href;
};

test("a standby that is named first is skipped", async () => {
  const store = await opened(withHosts(pair.standby.folder, pair.primary.folder));
  await write(store, "a");
  expect(await placeOf(store)).toBe("primary");
});

test("doctor distinguishes the primary from its standby", async () => {
  // On a busy machine an answer may take longer than doctor waits.
  await until(
    "both answer in time",
    async () => !JSON.stringify(await databaseServers(databaseUrl)).includes("timeout"),
  );
  expect(await databaseServers(databaseUrl)).toEqual([
    {
      what: `database server ${pair.primary.folder}:5432`,
      state: "good",
      detail: "accepts writes, commits wait for a standby",
    },
    { what: `database server ${pair.standby.folder}:5432`, state: "good", detail: "is a standby" },
  ]);
  expect(await databaseServers(withHosts(pair.primary.folder))).toEqual([]);
});

test("an unusable server is reported with the reason", async () => {
  const url = `${withHosts(pair.standby.folder)}&target_session_attrs=read-write`;
  await expect(opened(url)).rejects.toThrow(/cannot use database .*: is a standby/);
  const gone = withHosts(pair.standby.folder, join(dataDir, "nowhere"));
  await expect(opened(gone)).rejects.toThrow(
    /none of the servers can be used: .* is a standby; .*nowhere:5432 does not answer \(connect ENOENT/,
  );
});

test("a server that accepts connections and does not answer is skipped, and named in the error", async () => {
  const silent = createServer();
  const sockets: Socket[] = [];
  silent.on("connection", (socket) => sockets.push(socket.resume()));
  await new Promise<void>((resolve) => silent.listen(join(dataDir, ".s.PGSQL.5432"), resolve));
  const store = await opened(withHosts(dataDir, pair.primary.folder));
  await write(store, "a");
  expect(await placeOf(store)).toBe("primary");
  // Only once: the result is remembered.
  expect(sockets.length).toBe(1);
  await expect(opened(withHosts(dataDir, pair.standby.folder))).rejects.toThrow(
    /:5432 does not answer \(.*timeout.*\); .*:5432 is a standby/,
  );
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});

test("connections to a server that became read-only, or that closes them, are not used again", async () => {
  const store = await opened(pair.primary.url.replace("/postgres?", `/${new URL(databaseUrl).pathname.slice(1)}?`));
  const pid = async () => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(store.db);
    return rows[0]?.pid;
  };
  const first = await pid();
  expect(await pid()).toBe(first);
  await sql`set default_transaction_read_only = on`.execute(store.db);
  await expect(write(store, "a")).rejects.toThrow(/cannot execute INSERT in a read-only transaction/);
  const second = await pid();
  expect(second).not.toBe(first);
  await write(store, "a");
  await asked(pair.primary.url, `select pg_terminate_backend(${second})`);
  await until("another connection is used", () => isDone(write(store, "b")));
  expect(await names(store)).toEqual(["a", "b"]);
});

test("nothing is acknowledged that is only on the primary", async () => {
  const store = await opened();
  await write(store, "both");
  await pair.standby.stop();
  await expect(write(store, "primary")).rejects.toThrow("Query read timeout");
  await pair.standby.start();
  await until("it works again", () => isDone(write(store, "again")));
  expect(await names(store)).toEqual(expect.arrayContaining(["again", "both"]));
}, 120_000);

// Last, since it changes the roles of the pair.
test("a promoted standby is used with everything acknowledged, and a former primary that comes back is not used", async () => {
  const store = await opened();
  expect(await placeOf(store)).toBe("primary");
  await write(store, "before");
  await pair.primary.crash("SIGKILL");
  await expect(write(store, "lost")).rejects.toThrow();
  await expect(write(store, "lost")).rejects.toThrow(
    /none of the servers can be used: .* does not answer .* is a standby/,
  );
  expect(await databaseServers(databaseUrl)).toMatchObject([
    { state: "warning", detail: expect.stringContaining("does not answer (connect ") },
    { state: "good" },
  ]);
  await pair.standby.promote();
  await until("the standby is used", () => isDone(write(store, "after")));
  expect(await names(store)).toEqual(["after", "before"]);

  // As it was: it accepts writes, except that it waits for its standby.
  await pair.primary.start();
  await asked(pair.primary.url, "alter system reset synchronous_standby_names");
  await asked(pair.primary.url, "select pg_reload_conf()");
  // Every connection is opened anew, first while both accept writes, then while only the former primary does.
  await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'headgate' and pid <> pg_backend_pid()`.execute(store.db);
  await until("it works", () => isDone(write(store, "later")));
  expect(await placeOf(store)).toBe("standby");
  const detail = expect.stringMatching(
    /so does another one: stop the former primary \(timeline [12], the newest is 2\)/,
  );
  expect(await databaseServers(databaseUrl)).toMatchObject(Array(2).fill({ state: "bad", detail }));
  await pair.standby.crash("SIGQUIT");
  await expect(write(store, "fenced")).rejects.toThrow();
  await expect(write(store, "fenced")).rejects.toThrow(/is a former primary \(timeline 1, another server has 2\)/);
  await pair.standby.start();
  await until("it works again", () => isDone(write(store, "last")));
  expect(await names(store)).toEqual(["after", "before", "last", "later"]);
  const old = await opened(withHosts(pair.primary.folder));
  expect(await names(old)).toEqual(["before"]);
}, 120_000);
