// Copies a whole store from one place to another, of either kind: every table, page by page, then compared row by row.
// Until the last comparison the target is marked as incomplete, and nobody can open it.
import { type Kysely, sql } from "kysely";
import { StoreFailed, StoreUnavailable } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";
import { markUnfinished, migrate, requireOwnTables, TRIGGER_TABLES, UNFINISHED_COPY } from "../migrations.ts";
import { type OpenedStore, requireThisSchema } from "./location.ts";
import { countRows, pagesOf, requireRows, writeRows } from "./rows.ts";
import { readShape, type TableShape } from "./shape.ts";

/** The table of migrations that were run: each store has its own. */
const BOOKKEEPING = "migration";

/** One table that was copied, and verified to be equal. */
export interface CopiedTable {
  readonly table: string;
  readonly rows: number;
}

/** Copies `source` into `target`, which must contain nothing of headgate. `keep` is called when all rows are there and
 *  equal, before the target may be used. Rejects with `StoreUnavailable` for a source or target that cannot be used and
 *  `StoreFailed` for a copy that is not equal; whenever it rejects, and when `signal` aborts, the target is as empty as
 *  before. */
export async function copyStore(
  source: OpenedStore,
  target: OpenedStore,
  { signal, keep = () => {} }: { readonly signal?: AbortSignal; readonly keep?: () => void } = {},
): Promise<readonly CopiedTable[]> {
  await requireThisSchema(source);
  const before = await contentOf(target);
  if (before.tables.includes(BOOKKEEPING)) {
    await requireOwnTables(target.db as Kysely<unknown>, target.name);
    throw await notEmpty(target);
  }
  try {
    await markUnfinished(target.db as Kysely<unknown>);
    await migrate(target.db as Kysely<unknown>, { alone: true, isCopy: true });
    const shape = await readShape(target);
    const tables = shape.filter(({ name }) => name !== BOOKKEEPING && !before.tables.includes(name));
    await fill(source, target, tables, signal);
    const copied = await compare(source, target, tables, signal);
    keep();
    await sql`delete from migration where name = ${UNFINISHED_COPY}`.execute(target.db);
    return copied;
  } catch (error) {
    await empty(target, before).catch((cause: unknown) => {
      throw new StoreFailed(
        `${reasonOf(error)}; and ${target.name} could not be emptied again (${reasonOf(cause)}): it holds an incomplete copy, which no service will use`,
        { cause: error },
      );
    });
    throw error;
  }
}

async function fill(
  source: OpenedStore,
  target: OpenedStore,
  tables: readonly TableShape[],
  signal: AbortSignal | undefined,
): Promise<void> {
  // Rows that migrations and triggers write themselves, such as the sizes of tables, are replaced at the end.
  const kept: TableShape[] = [];
  for (const table of tables) {
    if (TRIGGER_TABLES.includes(table.name) || (await countRows(target.db, table)) > 0) kept.push(table);
  }
  for (const table of [...tables.filter((each) => !kept.includes(each)), ...kept]) {
    if (kept.includes(table)) await sql`delete from ${sql.table(table.name)}`.execute(target.db);
    for await (const page of pagesOf(source.db, table)) {
      signal?.throwIfAborted();
      await writeRows(target.db, table, page);
    }
  }
}

async function compare(
  source: OpenedStore,
  target: OpenedStore,
  tables: readonly TableShape[],
  signal: AbortSignal | undefined,
): Promise<readonly CopiedTable[]> {
  const copied: CopiedTable[] = [];
  for (const table of tables) {
    let rows = 0;
    for await (const page of pagesOf(source.db, table)) {
      signal?.throwIfAborted();
      await requireRows(target.db, table, page);
      rows += page.length;
    }
    const there = await countRows(target.db, table);
    if (there !== rows) throw new StoreFailed(`${table.name} has ${rows} rows, but its copy has ${there}`);
    copied.push({ table: table.name, rows });
  }
  return copied;
}

interface Content {
  readonly tables: readonly string[];
  /** For PostgreSQL, as `drop function` names them. */
  readonly functions: readonly string[];
}

async function contentOf(store: OpenedStore): Promise<Content> {
  const tables = (await readShape(store)).map(({ name }) => name);
  if (store.kind === "embedded") return { tables, functions: [] };
  const { rows } = await sql<{ name: string }>`
    select p.oid::regprocedure::text as name from pg_proc p where p.pronamespace = current_schema()::regnamespace
  `.execute(store.db);
  return { tables, functions: rows.map(({ name }) => name) };
}

/** Drops everything created since `before`. The file of an embedded store is removed by whoever created it. */
async function empty(target: OpenedStore, before: Content): Promise<void> {
  if (target.kind === "embedded") return;
  const now = await contentOf(target);
  for (const name of now.tables.toReversed())
    if (!before.tables.includes(name)) await sql`drop table ${sql.table(name)}`.execute(target.db);
  for (const name of now.functions)
    if (!before.functions.includes(name)) await sql`drop function ${sql.raw(name)}`.execute(target.db);
}

async function notEmpty({ db, name }: OpenedStore): Promise<StoreUnavailable> {
  const marks = await sql`select 1 from migration where name = ${UNFINISHED_COPY}`.execute(db);
  return new StoreUnavailable(
    marks.rows.length > 0
      ? `${name} holds an incomplete copy of an interrupted run: remove it, then copy again`
      : `${name} already holds a store: copy into a new data directory or an empty database`,
  );
}
