// The tables of an open store, read from its own catalogue, so that no list has to be maintained: columns, primary key,
// and which tables must be filled first.
import { type Kysely, sql } from "kysely";
import { StoreFailed } from "../../errors.ts";
import type { OpenedStore } from "./location.ts";

export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
  /** Columns of the primary key, in order; empty for a table without one. */
  readonly key: readonly string[];
  /** Tables that its foreign keys refer to. */
  readonly parents: readonly string[];
}

interface Column {
  readonly owner: string;
  readonly name: string;
  /** Position in the primary key, from 1; 0 for none. */
  readonly position: number;
}
interface Reference {
  readonly owner: string;
  readonly parent: string;
}

/** Every table; tables that others refer to come first. */
export async function readShape({ db, kind }: Pick<OpenedStore, "db" | "kind">): Promise<readonly TableShape[]> {
  const [columns, references] = kind === "embedded" ? await ofLibsql(db) : await ofPostgres(db);
  const names = [...new Set(columns.map(({ owner }) => owner))].sort();
  const shapes = names.map((name) => {
    const own = columns.filter(({ owner }) => owner === name);
    const key = own.filter(({ position }) => position > 0).sort((one, other) => one.position - other.position);
    const parents = references.filter(({ owner, parent }) => owner === name && parent !== name);
    return {
      name,
      columns: own.map((column) => column.name),
      key: key.map((column) => column.name),
      parents: [...new Set(parents.map(({ parent }) => parent))],
    };
  });
  return inOrder(shapes);
}

async function ofLibsql(db: Kysely<never> | OpenedStore["db"]) {
  const on = db as OpenedStore["db"];
  const columns = await sql<Column>`
    select t.name as owner, c.name as name, c.pk as position
    from sqlite_master t, pragma_table_info(t.name) c
    where t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\' order by t.name, c.cid
  `.execute(on);
  const references = await sql<Reference>`
    select t.name as owner, f."table" as parent
    from sqlite_master t, pragma_foreign_key_list(t.name) f where t.type = 'table'
  `.execute(on);
  return [columns.rows, references.rows] as const;
}

async function ofPostgres(db: OpenedStore["db"]) {
  const columns = await sql<Column>`
    select t.relname as owner, c.attname as name,
      coalesce(array_position(string_to_array(i.indkey::text, ' '), c.attnum::text), 0) as position
    from pg_class t
    join pg_attribute c on c.attrelid = t.oid and c.attnum > 0 and not c.attisdropped
    left join pg_index i on i.indrelid = t.oid and i.indisprimary
    where t.relkind in ('r', 'p') and t.relnamespace = current_schema()::regnamespace
    order by t.relname, c.attnum
  `.execute(db);
  const references = await sql<Reference>`
    select child.relname as owner, parent.relname as parent
    from pg_constraint f
    join pg_class child on child.oid = f.conrelid
    join pg_class parent on parent.oid = f.confrelid
    where f.contype = 'f' and f.connamespace = current_schema()::regnamespace
  `.execute(db);
  return [columns.rows, references.rows] as const;
}

function inOrder(shapes: readonly TableShape[]): readonly TableShape[] {
  const placed: TableShape[] = [];
  let waiting = shapes;
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ name }) => name));
    const free = waiting.filter(({ parents }) => !parents.some((parent) => names.has(parent)));
    if (free.length === 0) throw new StoreFailed(`tables refer to each other in a circle: ${[...names].join(", ")}`);
    placed.push(...free);
    waiting = waiting.filter((shape) => !free.includes(shape));
  }
  return placed;
}
