// Migration 0036: the logo of an organisation, and the pause of a stream's upstream.
import type { Kysely } from "kysely";

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
