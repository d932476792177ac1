// An organisation's own limits in place of those of the service, and the index for counting its live streams.
import { type Kysely, sql } from "kysely";

/** Null in each: the service's limit applies. */
export const LIMIT_COLUMNS = ["max_streams", "max_ingest_kbps", "max_setups_per_second"] as const;

export async function organisationLimits(db: Kysely<unknown>): Promise<void> {
  for (const column of LIMIT_COLUMNS) await db.schema.alterTable("organisation").addColumn(column, "integer").execute();
  // Those on other nodes are counted for each publish of an organisation with a limit.
  await sql`create index publish_live_of on publish (organisation_id) where state = 'live'`.execute(db);
}
