// The size of the delivery log, maintained by triggers in the store for every row added or removed: reading it means
// reading one row, whoever changes the log. Summing a million rows would block the embedded store for that long.
import { type CompiledQuery, type Kysely, PostgresAdapter, sql } from "kysely";
import { PORTION, untaken } from "./portions.ts";
import type { Schema } from "./schema.ts";

/** Total bytes of all deliveries. */
export async function deliveryBytes(db: Kysely<Schema>): Promise<number> {
  const { bytes } = await db.selectFrom("delivery_size").select("bytes").executeTakeFirstOrThrow();
  return Number(bytes);
}

/** Deletes a portion of the oldest deliveries. */
export function oldestDeliveries(db: Kysely<Schema>): CompiledQuery {
  const oldest = db.selectFrom("delivery").select("id").orderBy("last_at").limit(PORTION);
  return db.deleteFrom("delivery").where("id", "in", untaken(db, oldest)).compile();
}

/** Migration 0010: the sum, initialised from the existing rows, and the triggers that maintain it. */
export async function deliverySize(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("delivery_size")
    .addColumn("bytes", "bigint", (column) => column.notNull())
    .execute();
  await sql`insert into delivery_size (bytes) select coalesce(sum(bytes), 0) from delivery`.execute(db);
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  for (const trigger of isPostgres ? POSTGRES_TRIGGERS : LIBSQL_TRIGGERS) await sql.raw(trigger).execute(db);
}

const LIBSQL_TRIGGERS = [
  `create trigger delivery_added after insert on delivery
   begin update delivery_size set bytes = bytes + new.bytes; end`,
  `create trigger delivery_removed after delete on delivery
   begin update delivery_size set bytes = bytes - old.bytes; end`,
];

/** Once per statement, and not at all for one that changed nothing. */
const POSTGRES_TRIGGERS = [
  `create function count_delivery_bytes() returns trigger language plpgsql as $$
   begin
     update delivery_size
     set bytes = bytes + case tg_op when 'INSERT' then 1 else -1 end * (select sum(changed.bytes) from changed)
     where exists (select from changed);
     return null;
   end $$`,
  `create trigger delivery_added after insert on delivery referencing new table as changed
   for each statement execute function count_delivery_bytes()`,
  `create trigger delivery_removed after delete on delivery referencing old table as changed
   for each statement execute function count_delivery_bytes()`,
];
