// Rows of any table, a page at a time: read in the order of the primary key, written, and compared by it. Stores sort
// texts differently, so the other side is queried for the same keys instead of being read in parallel.
import { type RawBuilder, sql } from "kysely";
import { StoreFailed } from "../../errors.ts";
import type { OpenedStore } from "./location.ts";
import type { TableShape } from "./shape.ts";

/** Rows in memory at a time. A row is at most some ten kilobytes; the statement that writes a page stays below both
 *  stores' limit of parameters (32,766). */
const PAGE_ROWS = 200;

export type Row = Readonly<Record<string, string | number | null>>;
type Db = OpenedStore["db"];

/** All rows of a table. */
export async function* pagesOf(db: Db, table: TableShape): AsyncGenerator<readonly Row[]> {
  if (table.key.length === 0) return yield await rowsWithoutKey(db, table);
  const order = sql.join(table.key.map((name) => sql.ref(name)));
  let after: RawBuilder<unknown> = sql`true`;
  for (;;) {
    const page = await sql<Row>`
      select ${columnsOf(table)} from ${sql.table(table.name)} where ${after} order by ${order} limit ${sql.lit(PAGE_ROWS)}
    `.execute(db);
    if (page.rows.length > 0) yield page.rows;
    const last = page.rows.at(-1);
    if (last === undefined || page.rows.length < PAGE_ROWS) return;
    after = sql`(${order}) > (${sql.join(valuesOf(last, table.key))})`;
  }
}

export async function writeRows(db: Db, table: TableShape, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const values = rows.map((row) => sql`(${sql.join(valuesOf(row, table.columns))})`);
  await sql`insert into ${sql.table(table.name)} (${columnsOf(table)}) values ${sql.join(values)}`.execute(db);
}

/** Throws `StoreFailed` unless `db` contains each of these rows unchanged. */
export async function requireRows(db: Db, table: TableShape, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const found = table.key.length === 0 ? await rowsWithoutKey(db, table) : await rowsOf(db, table, rows);
  const by = table.key.length === 0 ? table.columns : table.key;
  const textOf = (row: Row) => JSON.stringify(valuesOf(row, by));
  const others = new Map(found.map((row) => [textOf(row), row]));
  for (const row of rows) {
    const other = others.get(textOf(row));
    // Keys are ids and hashes of ids, which may be shown; for other columns only the name is given, not the value.
    if (other === undefined) throw new StoreFailed(`row ${textOf(row)} of ${table.name} is missing from the copy`);
    const differing = table.columns.find((column) => row[column] !== other[column]);
    if (differing !== undefined)
      throw new StoreFailed(`row ${textOf(row)} of ${table.name} has a different ${differing} in the copy`);
  }
}

export async function countRows(db: Db, table: TableShape): Promise<number> {
  const { rows } = await sql<{ rows: number }>`select count(*) as rows from ${sql.table(table.name)}`.execute(db);
  return Number(rows[0]?.rows);
}

async function rowsOf(db: Db, table: TableShape, rows: readonly Row[]): Promise<readonly Row[]> {
  const [only, ...others] = table.key;
  const sameKey = (row: Row) =>
    sql.join(
      table.key.map((name) => sql`${sql.ref(name)} = ${row[name]}`),
      sql` and `,
    );
  const where =
    only !== undefined && others.length === 0
      ? sql`${sql.ref(only)} in (${sql.join(rows.map((row) => row[only]))})`
      : sql.join(
          rows.map((row) => sql`(${sameKey(row)})`),
          sql` or `,
        );
  return (await sql<Row>`select ${columnsOf(table)} from ${sql.table(table.name)} where ${where}`.execute(db)).rows;
}

/** A table without a key has only a row or two. */
async function rowsWithoutKey(db: Db, table: TableShape): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`
    select ${columnsOf(table)} from ${sql.table(table.name)} limit ${sql.lit(PAGE_ROWS + 1)}
  `.execute(db);
  if (rows.length > PAGE_ROWS) throw new StoreFailed(`the table ${table.name} has no key and too many rows`);
  return rows;
}

function columnsOf({ columns }: TableShape): RawBuilder<unknown> {
  return sql.join(columns.map((name) => sql.ref(name)));
}

function valuesOf(row: Row, columns: readonly string[]): readonly (string | number | null)[] {
  return columns.map((name) => row[name] ?? null);
}
