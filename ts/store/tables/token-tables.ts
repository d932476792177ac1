// Migrations 0004-tokens: state changes of token keys, and revoked web tokens; 0006: the order of revocations;
// 0033-tokens: the tokens that were created.
import { type Kysely, sql } from "kysely";
import type { Index } from "./indexes.ts";

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

/** A row for each web token and play token that was created, so that they can be listed and revoked. Never the token itself,
 *  nor the custom arguments in it. */
export interface TokenTable {
  /** Its `jti`. */
  id: string;
  organisation_id: string;
  kind: "broadcast" | "play";
  /** The stream name in it, without arguments; a stream with this name may not exist. */
  name: string;
  /** As in the audit log. */
  made_by_kind: "key" | "user" | "operator";
  /** "" for the operator. */
  made_by: string;
  /** How often the tokens of the stream had been revoked when it was created (token/revocations.ts). */
  revision: number;
  made_at: number;
  expires_at: number;
  /** When a publish or play was last allowed with it, to the minute; null for never. */
  last_used_at: number | null;
  /** When it was revoked by itself; null when it was not, or only with all tokens of its stream. */
  revoked_at: number | null;
}

/** For the lists, all of them newest first, for the limit of an organisation, and for the retention. */
const INDEXES: readonly Index[] = [
  { name: "token_newest", on: "token (organisation_id, made_at, id)" },
  { name: "token_of_name", on: "token (organisation_id, name, made_at, id)" },
  { name: "token_of_maker", on: "token (organisation_id, made_by, made_at, id)" },
  { name: "token_end_of_organisation", on: "token (organisation_id, expires_at)" },
  { name: "token_end", on: "token (expires_at)" },
];

/** A former version, which knows nothing of the table, leaves it alone: what that creates is not listed. */
export async function tokenRecords(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("token")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("kind", "text", (column) => column.notNull())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("made_by_kind", "text", (column) => column.notNull())
    .addColumn("made_by", "text", (column) => column.notNull())
    .addColumn("revision", "bigint", (column) => column.notNull())
    .addColumn("made_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint", (column) => column.notNull())
    .addColumn("last_used_at", "bigint")
    .addColumn("revoked_at", "bigint")
    .execute();
  for (const { name, on } of INDEXES) await sql`create index ${sql.ref(name)} on ${sql.raw(on)}`.execute(db);
}
