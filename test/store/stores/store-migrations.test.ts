// Every store of an earlier headgate is migrated to the current version, with its rows, on both stores
// (vitest.config.ts).
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LibsqlKysely, startLibsqlThread } from "../../../ts/store/libsql.ts";
import { MIGRATIONS, migrate } from "../../../ts/store/migrations.ts";
import { openPool, postgresDialect } from "../../../ts/store/postgres.ts";
import { databaseUrlOf, ON_POSTGRES, openTestStore } from "../../support/stores.ts";
import { casesOfRun } from "../../support/whole-run.ts";

/** Every column as one line. */
const LIBSQL_COLUMNS = `select t.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" as line
  from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table'`;
const POSTGRES_COLUMNS = `select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable as line
  from information_schema.columns where table_schema = 'public'`;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-migrations-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A store as created by the headgate with the first `count` migrations, with everything it could contain
 *  then. */
async function leave(dataDir: string, count: number): Promise<Rows> {
  mkdirSync(dataDir);
  const url = await databaseUrlOf(dataDir);
  // biome-ignore lint/suspicious/noExplicitAny: the tables of then, not of now
  const db: Kysely<any> =
    url === null
      ? new LibsqlKysely(await startLibsqlThread(dataDir, "service"))
      : new Kysely({ dialect: postgresDialect(openPool(url)) });
  await migrate(db as Kysely<unknown>, { alone: true }, MIGRATIONS.slice(0, count));
  const times = { created_at: 1, updated_at: 2 };
  const organisation = { id: "o", hash: "Ab1Cd", name: "Then", plan: "paid", enabled: 1, webhook: null, ...times };
  await db.insertInto("organisation").values(organisation).execute();
  const stream = { id: "s", organisation_id: "o", name: "Ab1Cd-1", state: "created", tags: "[]", ...times };
  await db.insertInto("stream").values(stream).execute();
  const key = { kid: "k", alg: "ES256", public_jwk: "{}", private_key: "x", state: "retired", created_at: 1 };
  await db.insertInto("token_key").values(key).execute();
  const rows = await fillTheRest(db);
  await db.destroy();
  return rows;
}

/** A row in each table that is still empty, whatever its columns were then: table → that row. */
// biome-ignore lint/suspicious/noExplicitAny: the tables of then, not of now
async function fillTheRest(db: Kysely<any>): Promise<Rows> {
  const rows: Rows = new Map();
  const tables = new Map<string, (readonly [column: string, type: string])[]>();
  for (const line of await columnsOf(db)) {
    const [, table = "", column = "", type = ""] = /^(\w+)\.(\w+) (\w*)/.exec(line) ?? [];
    if (!/migration|sqlite/.test(table)) tables.set(table, [...(tables.get(table) ?? []), [column, type]]);
  }
  // Inserts that fail because of a foreign key are tried again after its row. Triggers write the last ones.
  const sums = ["delivery_share", "table_share", "usage_sum", "stream_tag", "stream_word", "stream_count"];
  const written = ["organisation", "stream", "token_key", ...sums];
  let waiting = [...tables.keys()].filter((table) => !written.includes(table));
  let failure: unknown = null;
  for (let turn = tables.size; turn > 0 && waiting.length > 0; turn -= 1) {
    const again: string[] = [];
    for (const table of waiting) {
      const row = Object.fromEntries(
        (tables.get(table) ?? []).map(([name, type]) => [name, sampleOf(table, name, type)]),
      );
      try {
        await db.insertInto(table).values(row).execute();
        rows.set(table, row);
      } catch (error) {
        failure = error;
        again.push(table);
      }
    }
    waiting = again;
  }
  expect([waiting, waiting.length > 0 ? String(failure) : ""]).toEqual([[], ""]);
  return rows;
}

/** Every column as one line. */
// biome-ignore lint/suspicious/noExplicitAny: whatever tables there are
async function columnsOf(db: Kysely<any>): Promise<readonly string[]> {
  const { rows } = await sql<{ line: string }>`${sql.raw(ON_POSTGRES ? POSTGRES_COLUMNS : LIBSQL_COLUMNS)}`.execute(db);
  return rows.map(({ line }) => line).sort();
}

type Rows = Map<string, Readonly<Record<string, string | number>>>;

/** Foreign keys, and the columns that accept only some values. */
const KNOWN: Readonly<Record<string, string>> = {
  ...{ organisation_id: "o", role: "user", state: "ended", who_kind: "key", kind: "jti" },
  "node.state": "lost",
  "refusal.request": "publish",
  "refusal.protocol": "rtmp",
};

/** Numbers are small, and text is JSON. */
function sampleOf(table: string, column: string, type: string): string | number {
  if (/int|numeric|real|double/i.test(type)) return 7;
  const known = KNOWN[`${table}.${column}`] ?? KNOWN[column];
  if (known !== undefined) return known;
  return column === "stream_id" ? "s" : "{}";
}

async function shapeOf(dataDir: string, left: Rows = new Map()) {
  const { db, close } = await openTestStore(dataDir);
  for (const [table, row] of left) await expectKept(db as Kysely<unknown>, table, row);
  const columns = await columnsOf(db);
  const rows = {
    organisation: await db.selectFrom("organisation").select(["id", "name"]).execute(),
    stream: await db.selectFrom("stream").select(["id", "name", "state"]).execute(),
    tokenKey: await db.selectFrom("token_key").select(["kid", "state"]).execute(),
    shares: await db.selectFrom("delivery_share").selectAll().execute(),
  };
  await close();
  return { columns, rows };
}

/** The row exists, with each of the columns that still exist. */
// biome-ignore lint/suspicious/noExplicitAny: tables by their names
async function expectKept(db: Kysely<any>, table: string, row: Readonly<Record<string, string | number>>) {
  const [kept] = await db.selectFrom(table).selectAll().execute();
  const common = Object.entries(row).filter(([column]) => kept !== undefined && column in kept);
  expect([table, common.length > 0]).toEqual([table, true]);
  for (const [column, value] of common)
    expect([table, column, String(kept?.[column])]).toEqual([table, column, String(value)]);
}

/** The oldest store passes through every migration. */
const ENDS = MIGRATIONS.map(({ name }, index) => [name, index + 1] as const);

test.each(casesOfRun(ENDS, 6))("a store that ends with %s is migrated and keeps its rows", async (_, count) => {
  const left = await leave(join(folder, "then"), count);
  const then = await shapeOf(join(folder, "then"), left);
  const { columns } = await shapeOf(join(folder, "now"));
  expect(then.columns).toEqual(columns);
  expect(then.rows).toEqual({
    organisation: [{ id: "o", name: "Then" }],
    stream: [{ id: "s", name: "Ab1Cd-1", state: "created" }],
    tokenKey: [{ kid: "k", state: "retired" }],
    shares: left.has("delivery") ? [{ organisation_id: "o", bytes: 7 }] : [],
  });
});
