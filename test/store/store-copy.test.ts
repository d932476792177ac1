// `headgate store copy`: a whole store is copied from the embedded file to PostgreSQL and back, is the same row by row, and
// a service works on each; a copy that cannot be made says why and leaves nothing behind.
import { randomBytes } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { backUp } from "../../ts/store/backup.ts";
import { type OpenedStore, openAlone, type StoreLocation } from "../../ts/store/copy/location.ts";
import { pagesOf } from "../../ts/store/copy/rows.ts";
import { readShape } from "../../ts/store/copy/shape.ts";
import { startLibsqlThread } from "../../ts/store/libsql.ts";
import { MIGRATIONS } from "../../ts/store/migrations.ts";
import { openSecretBoxOf } from "../../ts/store/secret-box.ts";
import { rotateTokenKeys } from "../../ts/token/rotation.ts";
import { start, until } from "../support/child.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { fillStore } from "../support/full-store.ts";
import { startHeadgate } from "../support/headgate.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { openTestStore } from "../support/stores.ts";
import { inWholeRun, isWholeRun } from "../support/whole-run.ts";

const STREAMS = isWholeRun ? 10_000 : 300;
const LONG_MS = 300_000;

let folder: string;
let original: string;
let server: PostgresServer;
const apiKey = `test-${randomBytes(24).toString("hex")}`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-copy-"));
  original = join(folder, "original");
  server = await startPostgres();
  // Created only by a service: sealed keys, a webhook's secret, an upstream.
  const headgate = await startHeadgate({ env: env(original) });
  const { id } = (await headgate.call("POST", "/stream")) as { id: string };
  await headgate.call("POST", `/stream/${id}/upstream`, { url: "rtmp://up.example/live/stream-key" });
  await headgate.call("PUT", "/organisation/webhook", { webhook: "https://customer.example/" });
  await headgate.call("POST", "/organisation/webhook/secret");
  await headgate.call("PUT", "/organisation/settings", { hold_s: 5 });
  await headgate.stop();
  await opened({ kind: "embedded", dataDir: original }, async ({ db }) => {
    await db.updateTable("organisation").set({ webhook: null }).execute(); // otherwise each publish would call it
    await fillStore(db, STREAMS);
  });
}, LONG_MS);
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function env(dataDir: string, databaseUrl?: string): Record<string, string> {
  return {
    HEADGATE_DATA_DIR: dataDir,
    HEADGATE_BOOTSTRAP_API_KEY: apiKey,
    ...(databaseUrl === undefined ? {} : { HEADGATE_DATABASE_URL: databaseUrl }),
  };
}

async function headgate(...words: readonly string[]) {
  const child = start(process.execPath, ["scripts/headgate.mjs", ...words], { env: { PATH: process.env.PATH } });
  const code = await child.exit;
  return { code, out: child.stdout(), err: child.stderr() };
}

async function opened<T>(place: StoreLocation, act: (at: OpenedStore) => Promise<T>): Promise<T> {
  const at = await openAlone(place);
  try {
    return await act(at);
  } finally {
    await at.close();
  }
}

/** A store and its key, as `headgate init` makes them. */
async function begun(dataDir: string): Promise<string> {
  const store = await openTestStore(dataDir);
  const rotation = { alg: "ES256", rotateDays: 0, now: 0, algorithm: "active" } as const;
  await rotateTokenKeys(store.db, await openSecretBoxOf(store.db, dataDir), rotation);
  await store.close();
  return dataDir;
}

/** Every row of every table, as sorted texts, so that the store's order does not matter. */
async function contentOf(place: StoreLocation): Promise<Record<string, readonly string[]>> {
  return await opened(place, async (at) => {
    const tables: [string, string[]][] = [];
    for (const table of await readShape(at)) {
      const rows: string[] = [];
      for await (const page of pagesOf(at.db, table)) {
        rows.push(...page.map((row) => JSON.stringify(table.columns.toSorted().map((name) => [name, row[name]]))));
      }
      tables.push([table.name, rows.sort()]);
    }
    return Object.fromEntries(tables);
  });
}

/** A service on the copy can use the secrets of the original, and accepts a publish. */
async function requireWorking(dataDir: string, databaseUrl?: string): Promise<void> {
  const headgate = await startHeadgate({ env: env(dataDir, databaseUrl) });
  const streams = (await headgate.call("GET", "/stream?quantity=1")) as unknown as readonly { id: string }[];
  expect(streams).toHaveLength(1);
  const name = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 60 });
  await until("the publish runs", () => headgate.process.stderr().includes("publish started"), LONG_MS);
  encoder.kill("SIGKILL");
  await encoder.exit;
  expect(await headgate.stop()).toBe(0);
}

describe.sequential(`a store of ${STREAMS} streams`, () => {
  let databaseUrl: string;
  let back: string;

  test("has rows in every table, so that none can be forgotten", async () => {
    const content = await contentOf({ kind: "embedded", dataDir: original });
    const empty = Object.entries(content).filter(([, rows]) => rows.length === 0);
    expect(empty.map(([name]) => name)).toEqual([]);
    expect(content.stream?.length).toBeGreaterThan(STREAMS);
  });

  test(
    "is copied to PostgreSQL and back, and is the same row by row",
    async () => {
      databaseUrl = await server.newDatabase();
      back = join(folder, "deep", "back");
      const there = await headgate("store", "copy", original, databaseUrl);
      expect([there.code, there.err]).toEqual([0, ""]);
      expect(there.out).toMatch(new RegExp(`^stream +${STREAMS + 1} +equal$`, "m"));
      expect(there.out).toMatch(/^delivery_size +1 +equal$/m);
      expect(there.out).toContain(
        `${join(original, "headgate.key")} as headgate.key in the data directory of each node`,
      );
      const returned = await headgate("store", "copy", databaseUrl, back, "--data-dir", original, "--json");
      expect([returned.code, returned.err]).toEqual([0, ""]);
      const said = JSON.parse(returned.out) as { rows: number; tables: { table: string; rows: number }[] };
      const [first, second, third] = [
        await contentOf({ kind: "embedded", dataDir: original }),
        await contentOf({ kind: "postgres", databaseUrl }),
        await contentOf({ kind: "embedded", dataDir: back }),
      ];
      expect(second).toEqual(first);
      expect(third).toEqual(first);
      const { migration, ...others } = first;
      expect(Object.fromEntries(said.tables.map(({ table, rows }) => [table, rows]))).toEqual(
        Object.fromEntries(Object.entries(others).map(([name, rows]) => [name, rows.length])),
      );
      expect(migration).toHaveLength(MIGRATIONS.length);
      expect(readFileSync(join(back, "headgate.key"))).toEqual(readFileSync(join(original, "headgate.key")));
      for (const name of ["headgate.key", "headgate.db"]) expect(statSync(join(back, name)).mode & 0o777).toBe(0o600);
    },
    LONG_MS,
  );

  inWholeRun(
    "is served from PostgreSQL afterwards, and accepts a publish",
    async () => {
      await requireWorking(original, databaseUrl);
    },
    LONG_MS,
  );

  inWholeRun(
    "is served from the copied file, and accepts a publish",
    async () => {
      await requireWorking(back);
    },
    LONG_MS,
  );
});

describe("a copy is refused", () => {
  const refused = async (what: string | RegExp, ...words: readonly string[]) => {
    const { code, out, err } = await headgate("store", "copy", ...words);
    expect([out, err]).toEqual(["", expect.stringMatching(what)]);
    expect(code).not.toBe(0);
    expect(err).not.toContain("    at ");
  };
  const small = () => begun(mkdtempSync(join(folder, "small-")));

  inWholeRun(
    "while a service runs on either side",
    async () => {
      const source = await small();
      const database = await server.newDatabase();
      const running = await startHeadgate({ env: env(join(folder, "node"), database) });
      await refused(/database test\d+ at .* is in use by another headgate process: stop it first/, source, database);
      const target = join(folder, "never");
      await refused("is in use", database, target, "--key", join(source, "headgate.key"));
      expect(existsSync(target)).toBe(false);
      await running.stop();
      const embedded = await startHeadgate({ env: env(join(folder, "served")) });
      await refused("is in use by another headgate process", join(folder, "served"), target);
      await refused("is in use by another headgate process", source, join(folder, "served"));
      await embedded.stop();
    },
    LONG_MS,
  );

  inWholeRun(
    "into an existing store, and from where there is none",
    async () => {
      const [one, other] = [await small(), await small()];
      await refused(`${other} already holds a store`, one, other);
      const empty = mkdtempSync(join(folder, "empty-"));
      await refused("there is no .*headgate.key: set --key FILE to the key file", empty, other);
      copyFileSync(join(one, "headgate.key"), join(empty, "headgate.key"));
      await refused(`there is no store in ${empty}`, empty, join(folder, "never"));
      const key = join(one, "headgate.key");
      await refused(
        /there is no store in database test\d+/,
        await server.newDatabase(),
        join(folder, "never"),
        "--key",
        key,
      );
    },
    LONG_MS,
  );

  inWholeRun(
    "of another version's tables",
    async () => {
      const [older, newer] = [await small(), await small()];
      await opened({ kind: "embedded", dataDir: older }, ({ db }) =>
        sql`delete from migration where position = (select max(position) from migration)`.execute(db),
      );
      await opened({ kind: "embedded", dataDir: newer }, ({ db }) =>
        sql`insert into migration values (1000, '2000-tomorrow')`.execute(db),
      );
      await refused(
        "was last used by an older headgate .*: start the service on it once",
        older,
        join(folder, "never"),
      );
      await refused(
        "was created by a newer headgate \\(it has the migration 2000-tomorrow\\)",
        newer,
        join(folder, "never"),
      );
    },
    LONG_MS,
  );

  test(
    "without the key of its secrets, and when it would overwrite another key",
    async () => {
      const [source, other] = [await small(), await small()];
      await refused(
        "is not the key this store was made with",
        source,
        join(folder, "never"),
        "--key",
        join(other, "headgate.key"),
      );
      const target = mkdtempSync(join(folder, "keyed-"));
      copyFileSync(join(other, "headgate.key"), join(target, "headgate.key"));
      await refused("headgate.key holds a different key, which would be lost", source, target);
      expect(readdirSync(target)).toEqual(["headgate.key"]);
    },
    LONG_MS,
  );
});

describe("an interrupted copy", () => {
  // It must last long enough to be interrupted.
  inWholeRun.each(["SIGINT", "SIGKILL"] as const)(
    "by %s leaves no store that a service would use",
    async (signal) => {
      const databaseUrl = await server.newDatabase();
      const looker = new Client({ connectionString: databaseUrl });
      await looker.connect();
      await looker.query("create table theirs (id integer)");
      const child = start(process.execPath, ["scripts/headgate.mjs", "store", "copy", original, databaseUrl]);
      await until("some rows are there", async () => {
        const found = await looker.query("select 1 from stream limit 1").catch(() => ({ rows: [] }));
        return found.rows.length > 0;
      });
      child.kill(signal);
      expect(await child.exit).toBe(signal === "SIGKILL" ? signal : 1);
      const { rows } = await looker.query<{ relname: string }>(
        "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
      );
      await until("nobody else is connected", async () => {
        const others = await looker.query("select 1 from pg_stat_activity where application_name = 'headgate'");
        return others.rows.length === 0;
      });
      await looker.end();
      if (signal === "SIGINT") {
        expect(child.stderr()).toMatch(/interrupted: database test\d+ at .* is empty again/);
        expect(rows.map(({ relname }) => relname)).toEqual(["theirs"]);
        expect((await headgate("store", "copy", original, databaseUrl)).code).toBe(0);
      } else {
        const again = await headgate("store", "copy", original, databaseUrl);
        expect(again.err).toContain("holds an incomplete copy of an interrupted run: remove it, then copy again");
        const serve = start(process.execPath, ["scripts/headgate.mjs", "serve"], {
          env: { ...process.env, ...env(original, databaseUrl) },
        });
        expect(await serve.exit).toBe(4);
        expect(serve.stderr()).toContain("the store is an incomplete copy of an interrupted run");
      }
    },
    LONG_MS,
  );

  inWholeRun(
    "by SIGINT leaves no file of an embedded store",
    async () => {
      const target = join(folder, "cut-off");
      const child = start(process.execPath, ["scripts/headgate.mjs", "store", "copy", original, target]);
      await until("the copy has begun", () => existsSync(join(target, "headgate.db")), LONG_MS);
      child.kill("SIGINT");
      expect(await child.exit).toBe(1);
      expect(child.stderr()).toContain(`interrupted: ${target} is empty again`);
      expect(existsSync(target)).toBe(false);
    },
    LONG_MS,
  );
});

describe("a backup with its key", () => {
  test(
    "is restored into a new folder, and a service works there",
    async () => {
      const files = mkdtempSync(join(folder, "backup-"));
      const [file, key] = [join(files, "store.db"), join(files, "store.key")];
      const made = await headgate("backup", file, "--key", key, "--data-dir", original);
      expect([made.code, made.err]).toEqual([0, ""]);
      expect(statSync(key).mode & 0o777).toBe(0o600);
      const dataDir = join(folder, "restored");
      const restored = await headgate("restore", file, "--key", key, "--data-dir", dataDir);
      expect([restored.code, restored.err]).toEqual([0, ""]);
      expect(restored.out).toContain(`(${STREAMS + 1} streams)`);
      expect(readdirSync(dataDir).sort()).toEqual(["headgate.db", "headgate.key"]);
      expect(statSync(join(dataDir, "headgate.db")).mode & 0o777).toBe(0o600);
      await requireWorking(dataDir);
      const again = await headgate("restore", file, "--key", key, "--data-dir", dataDir);
      expect([again.code, again.err]).toEqual([2, expect.stringContaining("already holds a store")]);
    },
    LONG_MS,
  );

  test(
    "is not restored where a service runs whose store was moved away",
    async () => {
      const files = mkdtempSync(join(folder, "running-"));
      const [file, dataDir] = [join(files, "store.db"), join(files, "data")];
      backUp(original, file);
      await begun(dataDir);
      const service = await startLibsqlThread(dataDir, "service");
      for (const name of readdirSync(dataDir).filter((each) => each.startsWith("headgate.db"))) {
        renameSync(join(dataDir, name), join(files, name));
      }
      const key = join(original, "headgate.key");
      const refused = await headgate("restore", file, "--key", key, "--data-dir", dataDir);
      expect([refused.code, refused.err]).toEqual([4, expect.stringContaining("stop it first")]);
      expect(readdirSync(dataDir)).not.toContain("headgate.db");
      await service.close();
    },
    LONG_MS,
  );

  inWholeRun(
    "is refused with another key, without one, and when it is broken",
    async () => {
      const files = mkdtempSync(join(folder, "broken-"));
      const file = join(files, "store.db");
      await headgate("backup", file, "--data-dir", original);
      const dataDir = join(files, "data");
      const refused = async (what: string, ...words: readonly string[]) => {
        const { code, err } = await headgate("restore", ...words, "--data-dir", dataDir);
        expect([code, err]).toEqual([expect.toBeOneOf([2, 4]), expect.stringContaining(what)]);
        expect(existsSync(dataDir) ? readdirSync(dataDir) : []).toEqual([]);
      };
      await refused("set --key FILE to the key of the backup", file);
      const other = join(files, "other");
      await begun(other);
      await refused("is not the key this store was made with", file, "--key", join(other, "headgate.key"));
      const key = join(original, "headgate.key");
      await refused("is not a headgate backup", key, "--key", key);
    },
    LONG_MS,
  );
});
