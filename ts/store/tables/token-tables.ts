// Migrations 0004-tokens: state changes of token keys, and revoked web tokens; 0006: the order of revocations.
import { type Kysely, sql } from "kysely";

export async function tokenTables(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("token_key").addColumn("activated_at", "bigint").execute();
  await db.schema.alterTable("token_key").addColumn("retired_at", "bigint").execute();
  await sql`update token_key set activated_at = created_at where state = 'active'`.execute(db);

  await db.schema
    .createTable("token_revocation")
    .addColumn("kind", "text", (column) => column.notNull().check(sql`kind in ('jti', 'stream')`))
    .addColumn("value", "text", (column) => column.notNull())
    .addColumn("revision", "integer", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("token_revocation_of", ["kind", "value"])
    .execute();
  await db.schema.createIndex("token_revocation_newest").on("token_revocation").column("updated_at").execute();
}

/** Clocks may be set back; a number from the store's sequence cannot. */
export async function revocationOrder(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable("token_revocation")
    .addColumn("sequence", "bigint", (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema.dropIndex("token_revocation_newest").execute();
  await db.schema.createIndex("token_revocation_newest").on("token_revocation").column("sequence").execute();
}
