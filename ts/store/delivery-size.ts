// The size of the delivery log, and each organisation's share of it, maintained by triggers in the store for every row
// added or removed, whoever changes the log. Summing a million rows would block the embedded store for that long.
import { type CompiledQuery, type Kysely, PostgresAdapter, sql } from "kysely";
import { PORTION, untaken } from "./portions.ts";
import type { Schema } from "./schema.ts";

/** The tables that the triggers write. */
export const DELIVERY_SIZE_TABLES: readonly string[] = ["delivery_size", "delivery_share"];

/** Total bytes of all deliveries. */
export async function deliveryBytes(db: Kysely<Schema>): Promise<number> {
  const { bytes } = await db.selectFrom("delivery_size").select("bytes").executeTakeFirstOrThrow();
  return Number(bytes);
}

/** Deletes a portion of the oldest deliveries of the organisation that has the largest share, so that nobody loses
 *  deliveries because others have many. There are as many shares as organisations: few enough to read all. */
export function oldestDeliveries(db: Kysely<Schema>): CompiledQuery {
  const largest = db.selectFrom("delivery_share").select("organisation_id").orderBy("bytes", "desc").limit(1);
  // A range of one, in the order of the index delivery_newest: for an equal sign PostgreSQL may read the deliveries of all,
  // oldest first, until it has found enough of the organisation's.
  const oldest = db
    .selectFrom("delivery")
    .select("id")
    .where("organisation_id", ">=", largest)
    .where("organisation_id", "<=", largest)
    .orderBy("organisation_id")
    .orderBy("last_at")
    .limit(PORTION);
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

/** Migration 0022: the same for each organisation. */
export async function deliveryShares(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("delivery_share")
    .addColumn("organisation_id", "text", (column) => column.primaryKey().references("organisation.id"))
    .addColumn("bytes", "bigint", (column) => column.notNull())
    .execute();
  await sql`
    insert into delivery_share (organisation_id, bytes)
    select organisation_id, sum(bytes) from delivery group by organisation_id
  `.execute(db);
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  for (const change of isPostgres ? POSTGRES_SHARES : LIBSQL_SHARES) await sql.raw(change).execute(db);
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

const LIBSQL_SHARES = [
  `create trigger delivery_share_added after insert on delivery
   begin
     insert into delivery_share (organisation_id, bytes) values (new.organisation_id, new.bytes)
     on conflict (organisation_id) do update set bytes = bytes + excluded.bytes;
   end`,
  `create trigger delivery_share_removed after delete on delivery
   begin
     update delivery_share set bytes = bytes - old.bytes where organisation_id = old.organisation_id;
   end`,
];

/** The total first: whoever has changed it is alone until its transaction ends, so shares are never locked in two
 *  orders. */
const POSTGRES_SHARES = [
  `create or replace function count_delivery_bytes() returns trigger language plpgsql as $$
   declare factor integer := case tg_op when 'INSERT' then 1 else -1 end;
   begin
     update delivery_size
     set bytes = bytes + factor * (select sum(changed.bytes) from changed)
     where exists (select from changed);
     insert into delivery_share as share (organisation_id, bytes)
     select changed.organisation_id, factor * sum(changed.bytes) from changed group by changed.organisation_id
     on conflict (organisation_id) do update set bytes = share.bytes + excluded.bytes;
     return null;
   end $$`,
];
