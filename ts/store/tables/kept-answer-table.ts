// The table of responses that are repeated for their Idempotency-Key (M17).
import type { Kysely } from "kysely";

/** Migration 0011-kept-answers. */
export async function keptAnswerTable(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("kept_answer")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("sealed", "text")
    .addColumn("begun_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("kept_answer_oldest").on("kept_answer").column("begun_at").execute();
}
