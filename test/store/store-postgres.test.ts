// PostgreSQL as the store: one service at a time, commands beside it, and errors that say what to do without the password.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { exitCodeOf } from "../../ts/cli/exit-code.ts";
import { StoreFailed, StoreUnavailable } from "../../ts/errors.ts";
import { MIGRATIONS, type Migration } from "../../ts/store/migrations.ts";
import { openStore, type Store, type StoreOptions } from "../../ts/store/open.ts";
import { until } from "../support/child.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { databasesWithTables } from "../support/stores.ts";

let server: PostgresServer;
let newDatabase: () => Promise<string>;
let dataDir: string;
let databaseUrl: string;
const open: Store[] = [];

beforeAll(async () => {
  server = await startPostgres();
  newDatabase = await databasesWithTables(server);
});
afterAll(() => server.close());

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "headgate-postgres-store-"));
  databaseUrl = await newDatabase();
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  rmSync(dataDir, { recursive: true });
});

async function opened(access: NonNullable<StoreOptions["access"]> = "service", url = databaseUrl): Promise<Store> {
  const store = await openStore({ dataDir, databaseUrl: url, access });
  open.push(store);
  return store;
}

/** Longer than statements may take otherwise, and than their responses are awaited, seconds. */
const LONG_MIGRATION_S = 16;

const row = (name: string) => ({ name, next: 1 });

describe("opening", () => {
  test("refuses a database that another service uses, and opens it when that one is gone", async () => {
    const first = await opened();
    const refusal = await opened().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(String(refusal)).toMatch(/database test\d+ at .* is in use by another headgate process as node /);
    expect(exitCodeOf(refusal)).toBe(4);
    await first.close();
    await opened();
  });

  test("allows a command beside a service, and both see what the other writes", async () => {
    const service = await opened();
    const command = await opened("command");
    await service.db.insertInto("sequence").values(row("a")).execute();
    await command.db.insertInto("sequence").values(row("b")).execute();
    for (const { db } of [service, command]) {
      expect(await db.selectFrom("sequence").select("name").orderBy("name").execute()).toEqual([
        { name: "a" },
        { name: "b" },
      ]);
    }
  });

  test("refuses a command whose tables are newer than the running service's", async () => {
    const service = await opened();
    await sql`delete from migration where position = (select max(position) from migration)`.execute(service.db);
    await expect(opened("command")).rejects.toThrow("restart the service first");
  });

  test("waits on every node for a migration that takes longer than other statements may", async () => {
    let runs = 0;
    const up: Migration["up"] = async (db) => {
      runs += 1;
      await sql`select pg_sleep(${LONG_MIGRATION_S})`.execute(db);
    };
    const migrations = MIGRATIONS as Migration[];
    migrations.push({ name: "9999-long", up });
    try {
      const nodes = ["a", "b"].map(async (name) => {
        const store = await openStore({ dataDir, databaseUrl, node: { name } });
        open.push(store);
        return store;
      });
      for (const { db } of await Promise.all(nodes)) {
        const { rows } = await sql<{ name: string }>`select name from migration order by position desc`.execute(db);
        expect(rows[0]).toEqual({ name: "9999-long" });
        const limits = await sql`select current_setting('statement_timeout') as statement`.execute(db);
        expect(limits.rows).toEqual([{ statement: "10s" }]);
      }
      expect(runs).toBe(1);
    } finally {
      migrations.pop();
    }
  });

  test("reports which server cannot be reached, and never the password", async () => {
    const refusal = await opened("service", "postgres://me:s3cret@127.0.0.1:1/headgate").catch((error) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(String(refusal)).toContain("cannot use database headgate at 127.0.0.1:1: connect ECONNREFUSED");
    expect(String(refusal.stack)).not.toContain("s3cret");
  });
});

describe("a running store", () => {
  test("acknowledges nothing that is not on disk, whatever the server's default", async () => {
    await (await opened()).close();
    await sqlOn(databaseUrl, "alter database current set synchronous_commit = off");
    const { db } = await opened();
    const { rows } = await sql<{ level: string }>`select current_setting('synchronous_commit') as level`.execute(db);
    expect(rows).toEqual([{ level: "on" }]);
  });

  test("fails statements while the server is unreachable, and recovers by itself", async () => {
    const { db } = await opened();
    await db.insertInto("sequence").values(row("before")).execute();
    await server.stop();
    await expect(db.selectFrom("sequence").selectAll().execute()).rejects.toThrow(StoreFailed);
    await server.start();
    await until("the store works", () =>
      db
        .insertInto("sequence")
        .values(row("after"))
        .execute()
        .then(
          () => true,
          () => false,
        ),
    );
    expect(await db.selectFrom("sequence").select("name").orderBy("next").orderBy("name").execute()).toEqual([
      { name: "after" },
      { name: "before" },
    ]);
    // It has locked the database again: no other service may use it.
    const lockers = () =>
      sql<{ n: number }>`select count(*) as n from pg_locks where locktype = 'advisory'`.execute(db);
    await until("the lock is taken again", async () => (await lockers()).rows[0]?.n === 2); // that of the database, with the other nodes, and that of its name
  });

  test("fails only the statement whose server dies while it runs", async () => {
    const { db } = await opened();
    const sleeping = sql`select pg_sleep(60)`.execute(db);
    const failing = expect(sleeping).rejects.toThrow(StoreFailed);
    const waits = sql<{ n: number }>`select count(*) as n from pg_stat_activity where query like '%pg_sleep(60)'`;
    await until("it runs", async () => (await waits.execute(db)).rows[0]?.n === 1);
    await server.crash("SIGQUIT");
    await failing;
    await server.start();
    await until("the store works", () =>
      waits.execute(db).then(
        () => true,
        () => false,
      ),
    );
  });

  test("commits nothing of a transaction that ignored a failed statement", async () => {
    const { db } = await opened();
    const swallowing = db.transaction().execute(async (trx) => {
      await trx.insertInto("sequence").values(row("a")).execute();
      await trx
        .insertInto("sequence")
        .values(row("a"))
        .execute()
        .catch(() => {});
    });
    await expect(swallowing).rejects.toThrow("nothing was kept");
    expect(await db.selectFrom("sequence").selectAll().execute()).toEqual([]);
  });

  test("returns sums, counts and booleans as numbers, as the embedded store does", async () => {
    const { db } = await opened();
    await db
      .insertInto("sequence")
      .values([row("a"), row("b")])
      .execute();
    const { rows } = await sql`select sum(next) as sum, count(*) as count, max(next) = 1 as one from sequence`.execute(
      db,
    );
    expect(rows).toEqual([{ sum: 2, count: 2, one: 1 }]);
  });
});

async function sqlOn(url: string, statement: string): Promise<void> {
  const store = await openStore({ dataDir, databaseUrl: url, access: "command" });
  const name = new URL(url).pathname.slice(1);
  await sql.raw(statement.replace("current", name)).execute(store.db);
  await store.close();
}
