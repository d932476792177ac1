// Which organisation operates the deployment: written down, so that no clock and no order of rows decides it.
import { type Kysely, sql } from "kysely";

/** Migration 0023-operator. The operator was the organisation created first, by its own time; it stays. */
export async function operatorOrganisation(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("organisation").addColumn("operates", "integer").execute();
  await sql`create index organisation_operator on organisation (operates) where operates = 1`.execute(db);
  await sql`
    update organisation set operates = 1
    where id = (select id from organisation order by created_at, id limit 1)
  `.execute(db);
}
