// The short form of `npm run upgrade`: nodes are replaced one by one under load, by nodes of the same build.
// And the rules for every migration, so that nodes of the previous version keep working beside nodes of the
// next.
import { fileURLToPath } from "node:url";
import { Kysely, sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rehearse } from "../../tools/upgrade/rehearsal.mjs";
import { MIGRATIONS, type Migration, migrate } from "../../ts/store/migrations.ts";
import { openPool, postgresDialect } from "../../ts/store/postgres.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** The last migration that nodes of an older version need not tolerate: that of the first version with
 *  several nodes. The second step of a change, which removes what the previous version no longer uses,
 *  becomes the next one. */
const LAST_ALONE = "0014-nodes";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

inWholeRun(
  "nodes are replaced one by one, and no publish, event, frame or request is lost",
  async () => {
    const found = await rehearse({ before: root, after: root, nodes: 2, streams: 1, calmMs: 1_000 });
    expect([found.wrong, found.wrong.length > 0 ? found.log : []]).toEqual([[], []]);
    expect(found).toMatchObject({ replaced: 2, watched: 4, repeated: 0, done: found.accepted });
    expect(found.commands).toBe(12);
    expect(found.frames).toBeGreaterThan(100);
  },
  240_000,
);

/** The schema that statements of an older version use: tables, columns, and what rows must fulfil. */
interface Shape {
  readonly columns: ReadonlyMap<string, { readonly type: string; readonly mayBeLeftOut: boolean; isNullable: boolean }>;
  /** Unique indexes, checks and foreign keys, by their table. */
  readonly rules: ReadonlyMap<string, string>;
}

async function shapeOf(db: Kysely<unknown>): Promise<Shape> {
  const columns = await sql<{ name: string; type: string; nullable: string; fallback: string | null }>`
    select table_name || '.' || column_name as name, data_type as type, is_nullable as nullable,
      column_default as fallback
    from information_schema.columns where table_schema = 'public'`.execute(db);
  const rules = await sql<{ of: string; rule: string }>`
    select conrelid::regclass::text as of, pg_get_constraintdef(oid) as rule from pg_constraint
      where connamespace = 'public'::regnamespace
    union select tablename, indexdef from pg_indexes where schemaname = 'public' and indexdef like '%UNIQUE%'`.execute(
    db,
  );
  return {
    columns: new Map(
      columns.rows.map(({ name, type, nullable, fallback }) => {
        const isNullable = nullable === "YES";
        return [name, { type, isNullable, mayBeLeftOut: isNullable || fallback !== null }];
      }),
    ),
    rules: new Map(rules.rows.map(({ of, rule }) => [`${of}: ${rule}`, of])),
  };
}

/** What breaks statements of the previous version. */
function narrowed(then: Shape, now: Shape): readonly string[] {
  const complaints: string[] = [];
  const tables = new Set([...then.columns.keys()].map((name) => name.split(".")[0]));
  for (const [name, { type, isNullable }] of then.columns) {
    const column = now.columns.get(name);
    if (column === undefined) complaints.push(`${name} is gone`);
    else if (column.type !== type) complaints.push(`${name} is ${column.type}, and was ${type}`);
    else if (isNullable && !column.isNullable) complaints.push(`${name} may not be null any more`);
  }
  for (const [name, { mayBeLeftOut }] of now.columns) {
    if (!then.columns.has(name) && tables.has(name.split(".")[0]) && !mayBeLeftOut)
      complaints.push(`${name} must be given, and was not there`);
  }
  const isKnown = (rule: string) => then.rules.has(rule) || [...then.rules.keys()].some((of) => isWider(of, rule));
  for (const [rule, of] of now.rules) if (!isKnown(rule) && tables.has(of)) complaints.push(`${rule} is new`);
  return complaints;
}

/** Whether a unique index replaced one of the same name on fewer columns: it accepts everything that did. */
function isWider(before: string, now: string): boolean {
  const [was, is] = [before, now].map((rule) => /^(.* USING btree )\(([^()]*)\)(.*)$/.exec(rule));
  if (was == null || is == null || was[1] !== is[1] || was[3] !== is[3]) return false;
  const columns = (is[2] ?? "").split(", ");
  return (was[2] ?? "").split(", ").every((column) => columns.includes(column));
}

/** Runs migrations on an empty database, and returns what those from `first` on break. */
async function complaintsOf(migrations: readonly Migration[], first: number): Promise<readonly string[]> {
  const pool = openPool(await server.newDatabase());
  const db = new Kysely<unknown>({ dialect: postgresDialect(pool) });
  try {
    const complaints: string[] = [];
    await migrate(db, { alone: true }, migrations.slice(0, first));
    for (let count = first + 1; count <= migrations.length; count += 1) {
      const then = await shapeOf(db);
      await migrate(db, { alone: true }, migrations.slice(0, count));
      complaints.push(...narrowed(then, await shapeOf(db)).map((words) => `${migrations[count - 1]?.name}: ${words}`));
    }
    return complaints;
  } finally {
    await db.destroy();
  }
}

test("since nodes run beside each other, migrations remove nothing that the previous version's statements need", async () => {
  const first = MIGRATIONS.findIndex(({ name }) => name === LAST_ALONE) + 1;
  expect(first).toBeGreaterThan(0);
  expect(await complaintsOf(MIGRATIONS, first)).toEqual([]);
});

const BREAKING = [
  ["alter table thing drop column a", "thing.a is gone"],
  ["alter table thing rename column a to b", "thing.a is gone"],
  ["drop table thing", "thing.a is gone"],
  ["alter table thing alter column a set not null", "thing.a may not be null any more"],
  ["alter table thing alter column a type bigint using a::bigint", "thing.a is bigint, and was text"],
  ["alter table thing add column b text not null", "thing.b must be given, and was not there"],
  ["alter table thing add constraint c check (a <> '')", "thing: CHECK ((a <> ''::text)) is new"],
  ["create unique index c on thing (a)", "thing: CREATE UNIQUE INDEX c ON public.thing USING btree (a) is new"],
] as const;

test.each(casesOfRun(BREAKING, 3))("a breaking migration is detected: %s", async (statement, complaint) => {
  const step = (name: string, text: string): Migration => ({
    name,
    up: async (db) => void (await sql.raw(text).execute(db)),
  });
  const migrations = [step("1", "create table thing (a text)"), step("2", statement)];
  expect(await complaintsOf(migrations, 1)).toContain(`2: ${complaint}`);
});

test("a unique index may be made wider, and not narrower", async () => {
  const up = (text: string) => async (db: Kysely<unknown>) => void (await sql.raw(text).execute(db));
  const wide = up("drop index c; create unique index c on thing (a, b)");
  const migrations: readonly Migration[] = [
    { name: "1", up: up("create table thing (a text, b text); create unique index c on thing (a)") },
    { name: "2", up: wide },
    { name: "3", up: up("drop index c; create unique index c on thing (b)") },
  ];
  const narrow = "thing: CREATE UNIQUE INDEX c ON public.thing USING btree (b) is new";
  expect(await complaintsOf(migrations, 1)).toEqual([`3: ${narrow}`]);
});

test.each([
  "alter table thing add column b text",
  "alter table thing add column b integer not null default 0",
  "create index c on thing (a)",
  "create table other (a text not null unique)",
])("a compatible migration is accepted: %s", async (statement) => {
  const first: Migration = { name: "1", up: async (db) => void (await sql`create table thing (a text)`.execute(db)) };
  const second: Migration = { name: "2", up: async (db) => void (await sql.raw(statement).execute(db)) };
  expect(await complaintsOf([first, second], 1)).toEqual([]);
});
