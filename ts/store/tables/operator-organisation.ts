// Which organisation operates the deployment: written down, so that no clock and no order of rows decides it.
import { type Kysely, sql } from "kysely";

/** Migration 0023-operator. The operator was the organisation created first, by its own time; it stays. */
export async function operatorOrganisation(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("organisation").addColumn("operates", "integer").execute();
  await db.schema.createIndex("organisation_operator").unique().on("organisation").column("operates").execute();
  await sql`
    update organisation set operates = 1
    where id = (select id from organisation order by created_at, id limit 1)
  `.execute(db);
}
