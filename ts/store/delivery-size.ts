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

/** One of these organisations whose deliveries have more than `limit` bytes; null: none. `organisations`: null for all;
 *  there are as many shares as organisations, few enough to read all. */
export async function fullShareOf(
  db: Kysely<Schema>,
  organisations: readonly string[] | null,
  limit: number,
): Promise<string | null> {
  let shares = db.selectFrom("delivery_share").select("organisation_id").where("bytes", ">", limit);
  if (organisations !== null) shares = shares.where("organisation_id", "in", organisations);
  return (await shares.limit(1).executeTakeFirst())?.organisation_id ?? null;
}

/** Deletes a portion of the oldest deliveries of an organisation; null: of the one that has the largest share, so that
 *  nobody loses deliveries because others have many. There are as many shares as organisations: few enough to read all. */
export function oldestDeliveries(db: Kysely<Schema>, organisation: string | null = null): CompiledQuery {
  const share = db.selectFrom("delivery_share").select("organisation_id").orderBy("bytes", "desc").limit(1);
  const largest = organisation === null ? share : share.where("organisation_id", "=", organisation);
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

/** Migration 0032: the responses, and triggers for rows whose size changes with them. */
export async function deliveryResponses(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("delivery").addColumn("response", "text").execute();
  await db.schema.alterTable("publish").addColumn("denial_status", "integer").execute();
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  for (const change of isPostgres ? POSTGRES_CHANGES : LIBSQL_CHANGES) await sql.raw(change).execute(db);
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

const LIBSQL_CHANGES = [
  `create trigger delivery_resized after update of bytes on delivery when new.bytes <> old.bytes
   begin
     update delivery_size set bytes = bytes + new.bytes - old.bytes;
     update delivery_share set bytes = bytes + new.bytes - old.bytes where organisation_id = new.organisation_id;
   end`,
];

/** The total first, as above. */
const POSTGRES_CHANGES = [
  `create function recount_delivery_bytes() returns trigger language plpgsql as $$
   begin
     if not exists (select from changed join former using (id) where changed.bytes <> former.bytes) then
       return null;
     end if;
     update delivery_size
     set bytes = bytes + (select sum(changed.bytes) from changed) - (select sum(former.bytes) from former);
     update delivery_share as share set bytes = share.bytes + resized.bytes
     from (
       select changed.organisation_id, sum(changed.bytes - former.bytes) as bytes
       from changed join former using (id) group by changed.organisation_id
     ) as resized
     where share.organisation_id = resized.organisation_id;
     return null;
   end $$`,
  `create trigger delivery_resized after update on delivery
   referencing old table as former new table as changed
   for each statement execute function recount_delivery_bytes()`,
];
