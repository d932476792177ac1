// Where a new store is created, and where not: nothing of another one, of a copy, of a restore or of another program is
// ever taken for an empty place, and a start that is cut off or finds no space leaves nothing behind.
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { stored } from "../../ts/cli/doctor/stored.ts";
import { loadConfig } from "../../ts/config.ts";
import { copyBetween } from "../../ts/store/copy/between.ts";
import { copyKeyFile } from "../../ts/store/copy/key-file.ts";
import { openAlone } from "../../ts/store/copy/location.ts";
import { restore } from "../../ts/store/copy/restore.ts";
import { markUnfinished } from "../../ts/store/migrations.ts";
import { openStore, type StoreOptions } from "../../ts/store/open.ts";
import { openSecretBoxOf } from "../../ts/store/secret-box.ts";
import { start, until } from "../support/child.ts";
import { pause } from "../support/pause.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { casesOfRun } from "../support/whole-run.ts";

const LONG_MS = 240_000;
const DISK_BYTES = 4 << 20;
/** When a copy is killed, ms: before it opens its target, while it creates the tables, and while it copies. */
const KILLED_AFTER_MS = casesOfRun([500, 700, 900, 1_200, 1_600], 3);

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "headgate-beginnings-"));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** Opens and closes a store. */
async function opened(options: Partial<StoreOptions> = {}): Promise<void> {
  const store = await openStore({ dataDir, databaseUrl: null, ...options });
  await store.close();
}
/** Of an embedded store. */
function migrationsIn(folder: string): readonly unknown[] {
  const db = new Database(join(folder, "headgate.db"));
  const names = db.prepare("select name from migration order by name").all();
  db.close();
  return names;
}
const write = (name: string, content = "") => writeFileSync(join(dataDir, name), content);
const names = (folder = dataDir) =>
  readdirSync(folder)
    .filter((name) => !name.endsWith(".lock"))
    .sort();

describe("the embedded store is created", () => {
  test("in an empty folder, readable only by its owner, without anything beside it", async () => {
    await opened();
    expect(names()).toEqual(["headgate.db"]);
    expect(statSync(join(dataDir, "headgate.db")).mode & 0o777).toBe(0o600);
  });

  test("where another start was killed, whose leftovers are removed", async () => {
    mkdirSync(join(dataDir, "creating-abc"));
    write("creating-abc/headgate.db", "half");
    write("headgate.toml");
    await opened();
    expect(names()).toEqual(["headgate.db", "headgate.toml"]);
  });

  test("on a full disk not at all, and completely once there is space", async (context) => {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", dataDir]);
    } catch {
      return context.skip("needs the right to mount a disk");
    }
    try {
      for (const left of casesOfRun([4_096, 65_536, 262_144, 800_000], 2)) {
        writeFileSync(join(dataDir, "filler"), Buffer.alloc(DISK_BYTES - left - 8_192));
        await expect(opened()).rejects.toThrow(/cannot create a store|cannot open the locks/);
        expect(names()).toEqual(["filler"]);
        rmSync(join(dataDir, "filler"));
      }
      await opened();
      expect(names()).toEqual(["headgate.db"]);
    } finally {
      execFileSync("umount", ["--lazy", dataDir]);
    }
  });
});

describe("no embedded store is created where there is", () => {
  const cases: readonly (readonly [what: string, make: () => unknown, refusal: RegExp])[] = [
    ["an empty headgate.db", () => write("headgate.db"), /the store is not complete: a copy or a first start/],
    ["the key of one", () => write("headgate.key", "k"), /headgate\.key of one.*Set database_url/],
    ["its log alone", () => write("headgate.db-wal", "w"), /headgate\.db-wal of one.*Put headgate\.db back/],
    [
      "half a restore",
      () => mkdirSync(join(dataDir, "restoring-x")),
      /interrupted restore.*Run headgate restore again/,
    ],
    [
      "a half-made bookkeeping",
      () => tables("create table migration (position integer, name text)"),
      /is not complete/,
    ],
    ["another program's file", () => tables("create table users (id integer)"), /not those of headgate \(users\)/],
    ["another migration table", () => tables("create table migration (id integer)"), /named migration that is not/],
    [
      "a migration table with another's rows",
      () => tables("create table migration (position integer, name text); insert into migration values (0, 'x_1')"),
      /not those of headgate \(migration, with the row x_1\)/,
    ],
    ["a copy whose first step is done", marked, /incomplete copy of an interrupted run: remove it/],
  ];
  function tables(sql: string): void {
    const db = new Database(join(dataDir, "headgate.db"));
    db.exec(sql);
    db.close();
  }
  async function marked(): Promise<void> {
    const { db, close } = await openAlone({ kind: "embedded", dataDir });
    await markUnfinished(db as never);
    await close();
  }

  test.each(cases)("%s", async (_, make, refusal) => {
    await make();
    const before = names();
    for (const access of ["service", "command"] as const) await expect(opened({ access })).rejects.toThrow(refusal);
    expect(names()).toEqual(expect.arrayContaining(before));
    expect(names().filter((name) => !name.startsWith("headgate.db"))).toEqual(
      before.filter((name) => !name.startsWith("headgate.db")),
    );
  });

  test("a service that is replaced, whose file was removed", async () => {
    await expect(opened({ access: "successor" })).rejects.toThrow(/headgate\.db has been removed from/);
    expect(names()).toEqual([]);
  });
});

test.each([
  ["the key of one", () => write("headgate.key", "k"), "bad", /headgate\.key of one/],
  ["half a restore", () => mkdirSync(join(dataDir, "restoring-x")), "bad", /interrupted restore/],
  ["nothing", () => {}, "warning", /does not exist yet/],
])("doctor says what stands in the way of a new store: %s", async (_, make, state, detail) => {
  make();
  const { config } = loadConfig({ env: { HEADGATE_DATA_DIR: dataDir } });
  expect((await stored(config)).findings).toMatchObject([{ state, detail: expect.stringMatching(detail) }]);
});

test("a restore removes what an interrupted one left, and the store opens", async () => {
  const other = mkdtempSync(join(tmpdir(), "headgate-beginnings-"));
  await opened({ dataDir: other });
  mkdirSync(join(dataDir, "restoring-x"));
  await restore(join(other, "headgate.db"), dataDir, { check: async () => {}, keep: () => () => {} });
  expect(names()).toEqual(["headgate.db"]);
  await opened();
  rmSync(other, { recursive: true });
});

describe("the key file", () => {
  const boxOf = async () => {
    const store = await openStore({ dataDir, databaseUrl: null });
    try {
      return await openSecretBoxOf(store.db, dataDir);
    } finally {
      await store.close();
    }
  };
  const sealed = async () => {
    const { db, close } = await openStore({ dataDir, databaseUrl: null });
    const key = { kid: "k", alg: "ES256", public_jwk: "{}", private_key: "sealed", state: "active", created_at: 0 };
    await db
      .insertInto("token_key")
      .values(key as never)
      .execute();
    await close();
  };

  test("of a store without secrets is created, and that of one with secrets is missing", async () => {
    await boxOf();
    const key = readFileSync(join(dataDir, "headgate.key"), "utf8");
    await sealed();
    await boxOf();
    expect(readFileSync(join(dataDir, "headgate.key"), "utf8")).toBe(key);
    rmSync(join(dataDir, "headgate.key"));
    await expect(boxOf()).rejects.toThrow(/headgate\.key is missing: .*Put it back/);
    expect(existsSync(join(dataDir, "headgate.key"))).toBe(false);
  });

  test("is not left half-written where it cannot be written", () => {
    write("from", "a key");
    mkdirSync(join(dataDir, "to.partial"));
    expect(() => copyKeyFile(join(dataDir, "from"), join(dataDir, "to"))).toThrow(/cannot write/);
    expect(existsSync(join(dataDir, "to"))).toBe(false);
  });
});

describe("in PostgreSQL", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  }, LONG_MS);
  afterAll(() => server.close());

  async function asked<T>(databaseUrl: string, act: (client: Client) => Promise<T>): Promise<T> {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      return await act(client);
    } finally {
      await client.end();
    }
  }
  const contentOf = (databaseUrl: string) =>
    asked(databaseUrl, async (client) => {
      const here = "current_schema()::regnamespace";
      const all = `select relname as name from pg_class where relnamespace = ${here} and relkind = 'r'
        union all select proname from pg_proc where pronamespace = ${here} order by name`;
      return (await client.query<{ name: string }>(all)).rows.map(({ name }) => name);
    });

  test.each([
    ["tables of another program", "create table users (id integer)", /not those of headgate \(users\)/],
    ["its migration table", "create table migration (id serial, batch integer)", /named migration that is not/],
    [
      "a migration table with its rows",
      "create table migration (position integer, name text); insert into migration values (1, 'create_users')",
      /migration, with the row create_users/,
    ],
  ])("nothing is created beside %s", async (_, sql, refusal) => {
    const databaseUrl = await server.newDatabase();
    await asked(databaseUrl, (client) => client.query(sql));
    const before = await contentOf(databaseUrl);
    for (const access of ["service", "command"] as const)
      await expect(opened({ databaseUrl, access })).rejects.toThrow(refusal);
    expect(await contentOf(databaseUrl)).toEqual(before);
  });

  test("a schema of its own beside another program's is used", async () => {
    const databaseUrl = await server.newDatabase();
    await asked(databaseUrl, (client) => client.query("create table users (id integer)"));
    await asked(databaseUrl, (client) => client.query("create schema headgate"));
    const { pathname } = new URL(databaseUrl);
    const role = `alter database ${pathname.slice(1)} set search_path = headgate`;
    await asked(databaseUrl, (client) => client.query(role));
    await opened({ databaseUrl });
    expect(await contentOf(databaseUrl)).toContain("organisation");
  });

  test("a copy into or out of another program's database is refused in words", async () => {
    const databaseUrl = await server.newDatabase();
    await asked(databaseUrl, (client) => client.query("create table migration (id serial, batch integer)"));
    await opened({ dataDir: join(dataDir, "own") });
    const [file, other] = [
      { kind: "embedded", dataDir: join(dataDir, "own") },
      { kind: "postgres", databaseUrl },
    ] as const;
    for (const [from, to] of [
      [file, other],
      [other, { ...file, dataDir: join(dataDir, "new") }],
    ] as const) {
      const options = { signal: new AbortController().signal, check: async () => {}, keep: () => {} };
      await expect(copyBetween(from, to, options)).rejects.toThrow(/named migration that is not headgate's/);
    }
    expect(names()).toEqual(["own"]);
  });

  test("a copy whose first step is done is refused", async () => {
    const databaseUrl = await server.newDatabase();
    const { db, close } = await openAlone({ kind: "postgres", databaseUrl });
    await markUnfinished(db as never);
    await close();
    await expect(opened({ databaseUrl })).rejects.toThrow(/incomplete copy of an interrupted run/);
  });

  test(
    "a copy that is killed at any moment, in either direction, leaves nothing that is taken for an empty place",
    async () => {
      const original = join(dataDir, "original");
      await opened({ dataDir: original });
      writeFileSync(join(original, "headgate.key"), `${Buffer.alloc(32, 1).toString("base64url")}\n`);
      const inPostgres = await server.newDatabase();
      await opened({ databaseUrl: inPostgres });
      const killed = async (from: string, to: string, ms: number) => {
        const words = ["scripts/headgate.mjs", "store", "copy", from, to, "--key", join(original, "headgate.key")];
        const child = start(process.execPath, words, { env: { PATH: process.env.PATH } });
        await pause(ms); // the moment is what is tested
        child.kill("SIGKILL");
        return (await child.exit) === 0;
      };
      for (const ms of KILLED_AFTER_MS) {
        const file = join(dataDir, `copy-${ms}`);
        const database = await server.newDatabase();
        const [toFile, toDatabase] = [await killed(inPostgres, file, ms), await killed(original, database, ms)];
        // Killed between its last write and its exit, it is complete.
        if (!toFile && existsSync(join(file, "headgate.db"))) {
          const refusal = await opened({ dataDir: file }).catch((error: Error) => error.message);
          if (refusal === undefined) expect(migrationsIn(file)).toEqual(migrationsIn(original));
          else expect(refusal).toMatch(/incomplete copy|not complete/);
        }
        if (!toDatabase && (await contentOf(database)).length > 0) {
          const free = () =>
            opened({ databaseUrl: database }).then(
              () => "complete",
              (error: Error) => error.message,
            );
          const found = await until("it is free", async () => (await free()).replace(/.*in use.*/, "") || false);
          expect(found).toMatch(/^complete$|incomplete copy/);
        }
      }
    },
    LONG_MS,
  );
});
