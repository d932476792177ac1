// The migration 0003-management: people and their sessions, new columns of API keys, the audit log, usage by day.
import { type Kysely, sql } from "kysely";
import type { Index } from "./indexes.ts";

export async function managementTables(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("organisation").addColumn("trial_ends_at", "bigint").execute();
  await db.schema.alterTable("api_key").addColumn("label", "text").execute();
  await db.schema.alterTable("api_key").addColumn("scope_tag", "text").execute();
  await db.schema.alterTable("api_key").addColumn("revoked_at", "bigint").execute();
  await db.schema.alterTable("stream").addColumn("state_before_lock", "text").execute();

  await db.schema
    .createTable("person")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("email", "text", (column) => column.notNull().unique())
    .addColumn("role", "text", (column) => column.notNull().check(sql`role in ('administrator', 'user', 'readonly')`))
    .addColumn("password_hash", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .addColumn("last_login_at", "bigint")
    .execute();

  await db.schema
    .createTable("person_session")
    .addColumn("hash", "text", (column) => column.primaryKey())
    .addColumn("person_id", "text", (column) => column.notNull().references("person.id").onDelete("cascade"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("last_seen_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("person_session_of").on("person_session").columns(["person_id"]).execute();

  await db.schema
    .createTable("audit")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("at", "bigint", (column) => column.notNull())
    .addColumn("who_kind", "text", (column) => column.notNull().check(sql`who_kind in ('key', 'user', 'operator')`))
    .addColumn("who_id", "text")
    .addColumn("action", "text", (column) => column.notNull())
    .addColumn("subject", "text", (column) => column.notNull())
    .addColumn("detail", "text", (column) => column.notNull())
    .addColumn("request_id", "text")
    .execute();
  await db.schema.createIndex("audit_newest").on("audit").columns(["organisation_id", "id"]).execute();

  await db.schema
    .createTable("usage")
    .addColumn("stream_id", "text", (column) => column.notNull().references("stream.id"))
    .addColumn("day", "text", (column) => column.notNull())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("bytes_in", "bigint", (column) => column.notNull())
    .addColumn("bytes_out", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("usage_of_day", ["stream_id", "day"])
    .execute();
  await db.schema.createIndex("usage_by_day").on("usage").columns(["organisation_id", "day"]).execute();
}

/** Where the people of an organisation may sign in besides here (OpenID Connect); at most one. */
interface IdentityProviderTable {
  organisation_id: string;
  issuer: string;
  client_id: string;
  /** The client's secret, encrypted with the key file of the data directory; null for a public client. */
  sealed: string | null;
  /** Requested scopes, separated by spaces. */
  scope: string;
  /** The claim whose values decide the role. */
  role_claim: string;
  /** JSON array of `{ value, role }`. */
  roles: string;
  created_at: number;
  updated_at: number;
}

/** Which person a subject of an issuer is (OpenID Connect Core section 5.7). */
interface PersonIdentityTable {
  readonly organisation_id: string;
  readonly issuer: string;
  readonly subject: string;
  person_id: string;
  created_at: number;
}

export interface IdentityTables {
  identity_provider: IdentityProviderTable;
  person_identity: PersonIdentityTable;
}

/** The migration 0037-members: people and valid keys of one organisation are found without reading those of others. */
export const MEMBERS: readonly Index[] = [
  { name: "person_of_organisation", on: "person (organisation_id, created_at, id)" },
  { name: "valid_api_key", on: "api_key (organisation_id, created_at, id) where revoked_at is null" },
];

/** The migration 0034-identity-provider. */
export async function identityProviders(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("identity_provider")
    .addColumn("organisation_id", "text", (column) => column.primaryKey().references("organisation.id"))
    .addColumn("issuer", "text", (column) => column.notNull())
    .addColumn("client_id", "text", (column) => column.notNull())
    .addColumn("sealed", "text")
    .addColumn("scope", "text", (column) => column.notNull())
    .addColumn("role_claim", "text", (column) => column.notNull())
    .addColumn("roles", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema
    .createTable("person_identity")
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("issuer", "text", (column) => column.notNull())
    .addColumn("subject", "text", (column) => column.notNull())
    // A former version of headgate, which does not know this table, removes people too.
    .addColumn("person_id", "text", (column) => column.notNull().references("person.id").onDelete("cascade"))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addPrimaryKeyConstraint("person_identity_of", ["organisation_id", "issuer", "subject"])
    .execute();
  await db.schema.createIndex("identity_of_person").on("person_identity").column("person_id").execute();
}

/** The logo that an organisation's broadcasters see. */
export interface LogoTable {
  organisation_id: string;
  /** SHA-256 of the file, lower-case hex: its address. */
  sha256: string;
  /** The file, a PNG that this service has encoded, base64. */
  png: string;
  /** Pixels. */
  width: number;
  height: number;
  updated_at: number;
}

export interface LogoTables {
  organisation_logo: LogoTable;
}

export interface UpstreamPauseColumns {
  /** Since when nothing is pushed there; null: it is. */
  paused_at: number | null;
}

/** Migration 0036: the logo of an organisation, and the pause of a stream's upstream. */
export async function logosAndPauses(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("organisation_logo")
    .addColumn("organisation_id", "text", (column) => column.primaryKey().references("organisation.id"))
    .addColumn("sha256", "text", (column) => column.notNull())
    .addColumn("png", "text", (column) => column.notNull())
    .addColumn("width", "integer", (column) => column.notNull())
    .addColumn("height", "integer", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("logo_by_address").on("organisation_logo").column("sha256").execute();
  await db.schema.alterTable("stream_upstream").addColumn("paused_at", "bigint").execute();
}
