// Every store that an earlier headgate left becomes today's, with its rows, on both stores (vitest.config.ts).
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Kysely, sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LibsqlKysely, startLibsqlThread } from "../ts/store/libsql.ts";
import { MIGRATIONS, migrate } from "../ts/store/migrations.ts";
import { openPool, postgresDialect } from "../ts/store/postgres.ts";
import { databaseUrlOf, ON_POSTGRES, openTestStore } from "./support/stores.ts";

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

/** A store as the headgate with the first `count` migrations made it, holding what it could hold then. */
async function leave(dataDir: string, count: number): Promise<void> {
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
  await db.destroy();
}

async function shapeOf(dataDir: string) {
  const { db, close } = await openTestStore(dataDir);
  const columns = (await sql<{ line: string }>`${sql.raw(ON_POSTGRES ? POSTGRES_COLUMNS : LIBSQL_COLUMNS)}`.execute(db))
    .rows;
  const rows = {
    organisation: await db.selectFrom("organisation").select(["id", "name"]).execute(),
    stream: await db.selectFrom("stream").select(["id", "name", "state"]).execute(),
    tokenKey: await db.selectFrom("token_key").select(["kid", "state"]).execute(),
  };
  await close();
  return { columns: columns.map(({ line }) => line).sort(), rows };
}

test.each(MIGRATIONS.map(({ name }, index) => [name, index + 1] as const))(
  "a store that ends with %s is brought up to date and keeps its rows",
  async (_, count) => {
    await leave(join(folder, "then"), count);
    const then = await shapeOf(join(folder, "then"));
    const { columns } = await shapeOf(join(folder, "now"));
    expect(then.columns).toEqual(columns);
    expect(then.rows).toEqual({
      organisation: [{ id: "o", name: "Then" }],
      stream: [{ id: "s", name: "Ab1Cd-1", state: "created" }],
      tokenKey: [{ kid: "k", state: "retired" }],
    });
  },
);
