// How many rows and bytes each organisation has in the tables that its requests fill, maintained by triggers: limits and
// `headgate doctor` read one row instead of counting. Approximate: texts, and an allowance for each row.
import { type Kysely, PostgresAdapter, sql } from "kysely";

/** Size of a row in addition to its texts, indexes included, bytes. */
const ROW_BYTES = 300;

/** Each table with the texts of a row that may be long. */
const COUNTED = {
  stream: "tags",
  audit: "detail",
  kept_answer: "sealed",
  api_key: "label",
} as const;

/** The table that the triggers write. */
export const TABLE_SHARE = "table_share";

/** Migration 0026. Changes of other columns, such as the state of a stream at a publish, cost nothing. */
export async function tableShares(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("table_share")
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("table_name", "text", (column) => column.notNull())
    .addColumn("rows", "bigint", (column) => column.notNull())
    .addColumn("bytes", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("table_share_of", ["organisation_id", "table_name"])
    .execute();
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  for (const [table, text] of Object.entries(COUNTED)) {
    await sql
      .raw(`insert into table_share (organisation_id, table_name, rows, bytes)
        select organisation_id, '${table}', count(*), sum(${sizeOf("t", text)}) from ${table} as t group by organisation_id`)
      .execute(db);
    for (const change of (isPostgres ? postgres : libsql)(table, text)) await sql.raw(change).execute(db);
  }
}

const sizeOf = (row: string, text: string) => `(${ROW_BYTES} + coalesce(length(${row}.${text}), 0))`;

function libsql(table: string, text: string): string[] {
  const add = (row: string, rows: number, bytes: string) => `
    insert into table_share (organisation_id, table_name, rows, bytes)
    values (${row}.organisation_id, '${table}', ${rows}, ${bytes})
    on conflict (organisation_id, table_name) do update set rows = rows + excluded.rows, bytes = bytes + excluded.bytes;`;
  return [
    `create trigger ${table}_share_added after insert on ${table} begin ${add("new", 1, sizeOf("new", text))} end`,
    `create trigger ${table}_share_removed after delete on ${table}
     begin ${add("old", -1, `-${sizeOf("old", text)}`)} end`,
    `create trigger ${table}_share_changed after update of ${text} on ${table}
     begin ${add("new", 0, `${sizeOf("new", text)} - ${sizeOf("old", text)}`)} end`,
  ];
}

/** Once per statement that adds or removes rows; shares are locked in the order of organisations. */
function postgres(table: string, text: string): string[] {
  const add = (rows: string, bytes: string, from: string) => `
    insert into table_share as share (organisation_id, table_name, rows, bytes)
    select organisation_id, '${table}', ${rows}, ${bytes} from ${from} group by organisation_id order by organisation_id
    on conflict (organisation_id, table_name)
    do update set rows = share.rows + excluded.rows, bytes = share.bytes + excluded.bytes;`;
  const size = sizeOf("changed", text);
  return [
    `create function count_${table}_share() returns trigger language plpgsql as $$
     begin
       if tg_op = 'INSERT' then ${add("count(*)", `sum(${size})`, "changed")}
       else ${add("-count(*)", `-sum(${size})`, "changed")}
       end if;
       return null;
     end $$`,
    `create function change_${table}_share() returns trigger language plpgsql as $$
     begin
       insert into table_share as share (organisation_id, table_name, rows, bytes)
       values (new.organisation_id, '${table}', 0, ${sizeOf("new", text)} - ${sizeOf("old", text)})
       on conflict (organisation_id, table_name) do update set bytes = share.bytes + excluded.bytes;
       return null;
     end $$`,
    `create trigger ${table}_share_added after insert on ${table} referencing new table as changed
     for each statement execute function count_${table}_share()`,
    `create trigger ${table}_share_removed after delete on ${table} referencing old table as changed
     for each statement execute function count_${table}_share()`,
    `create trigger ${table}_share_changed after update of ${text} on ${table}
     for each row execute function change_${table}_share()`,
  ];
}
