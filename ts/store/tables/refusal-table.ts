// The migration 0030-refusals: refused publish and play requests that have no row in `publish`.
import { type Kysely, sql } from "kysely";
import type { Index } from "./indexes.ts";

/** Equal refusals within a few minutes are one row (publish/refusals/refusal-rows.ts). */
export interface RefusalTable {
  /** Digest of what is equal, so that every node writes the same row. */
  id: string;
  /** Whose stream it was; "" when no stream has the name, or it is not known. */
  organisation_id: string;
  /** null with several streams, or none. */
  stream_id: string | null;
  /** The name as sent, where no stream has it; null with several names, or none. */
  name: string | null;
  request: "publish" | "play";
  protocol: "rtmp" | "whip" | "v5";
  /** A `RefusalReason` (publish/refusals/reasons.ts). */
  reason: string;
  /** What the last one was told; null for nothing. */
  detail: string | null;
  /** "" with several addresses. */
  address: string;
  count: number;
  first_at: number;
  last_at: number;
}

export interface RefusalTables {
  refusal: RefusalTable;
}

/** Denied publishes of an organisation, newest first: the other half of its refusals. */
export const REFUSED_PUBLISHES: readonly Index[] = [
  { name: "publish_refused", on: "publish (organisation_id, asked_at, client_id) where state = 'denied'" },
];

export async function refusals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("refusal")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull())
    .addColumn("stream_id", "text")
    .addColumn("name", "text")
    .addColumn("request", "text", (column) => column.notNull())
    .addColumn("protocol", "text", (column) => column.notNull())
    .addColumn("reason", "text", (column) => column.notNull())
    .addColumn("detail", "text")
    .addColumn("address", "text", (column) => column.notNull())
    .addColumn("count", "bigint", (column) => column.notNull())
    .addColumn("first_at", "bigint", (column) => column.notNull())
    .addColumn("last_at", "bigint", (column) => column.notNull())
    .execute();
  // first_at never changes: counting a repetition writes no index.
  await db.schema.createIndex("refusal_newest").on("refusal").columns(["organisation_id", "first_at", "id"]).execute();
  await sql`create index refusal_of_stream on refusal (stream_id, first_at, id) where stream_id is not null`.execute(
    db,
  );
  // For the retention. Not on the plain column: a list of one organisation must never be read along it.
  await sql`create index refusal_age on refusal ((-first_at))`.execute(db);
}
