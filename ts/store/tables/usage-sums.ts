// Bytes of an organisation per day, summed ahead by triggers; and the indexes of filtered lists of usage and deliveries.
import { type Kysely, PostgresAdapter, sql } from "kysely";
import { countedAdded, countedBy, countedGrown } from "./shards.ts";

/** The tables that the triggers write. */
export const USAGE_SUM_TABLES: readonly string[] = ["usage_sum"];

/** Deliveries that failed or were refused: an index and a filter, which must have the same words. */
export const FAILED_DELIVERY =
  "(status is null or (call <> 'publish_done' and status <> 200) or (call = 'publish_done' and status >= 300 and status <> 410))";

/** Migration 0025-usage-sums. */
export async function usageSums(db: Kysely<unknown>): Promise<void> {
  const isPostgres = db.getExecutor().adapter instanceof PostgresAdapter;
  await db.schema
    .createTable("usage_sum")
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("day", "text", (column) => column.notNull())
    .addColumn("shard", "integer", (column) => column.notNull())
    .addColumn("bytes_in", "bigint", (column) => column.notNull())
    .addColumn("bytes_out", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("usage_sum_of", ["organisation_id", "day", "shard"])
    .execute();
  for (const statement of [
    `insert into usage_sum (organisation_id, day, shard, bytes_in, bytes_out)
     select organisation_id, day, 0, sum(bytes_in), sum(bytes_out) from "usage" group by organisation_id, day`,
    `create index usage_in_order on "usage" (organisation_id, day, stream_id)`,
    `create index delivery_failed on delivery (organisation_id, last_at desc, id) where ${FAILED_DELIVERY}`,
    `create index delivery_of_name on delivery (organisation_id, name, last_at desc, id)`,
    `create index delivery_listed on delivery (organisation_id, last_at desc, id)`,
    ...(isPostgres ? POSTGRES_TRIGGERS : LIBSQL_TRIGGERS),
  ]) {
    await sql.raw(statement).execute(db);
  }
}

const KEY = ["new.organisation_id", "new.day"];
const ADDED = countedBy("usage_sum", KEY, { bytes_in: "new.bytes_in", bytes_out: "new.bytes_out" });
const GREW = countedBy("usage_sum", KEY, {
  bytes_in: "new.bytes_in - old.bytes_in",
  bytes_out: "new.bytes_out - old.bytes_out",
});

const LIBSQL_TRIGGERS = [
  `create trigger usage_sum_added after insert on "usage" begin ${ADDED}; end`,
  `create trigger usage_sum_grew after update of bytes_in, bytes_out on "usage" begin ${GREW}; end`,
];

const POSTGRES_TRIGGERS = [
  ...countedAdded("usage_sum", "usage", { bytes_in: "sum(bytes_in)", bytes_out: "sum(bytes_out)" }),
  ...countedGrown("usage_sum", "usage", ["bytes_in", "bytes_out"]),
];
