// Columns and indexes of the table of publishes for the history of a stream.
import { type Kysely, sql } from "kysely";
import type { Index } from "./indexes.ts";

/** Migration 0013-publish-history. */
export async function publishHistory(db: Kysely<unknown>): Promise<void> {
  const texts = ["protocol", "denial_cause", "denial_reason", "video", "audio"] as const;
  for (const name of texts) await db.schema.alterTable("publish").addColumn(name, "text").execute();
  await db.schema.alterTable("publish").addColumn("dropped_frames", "bigint").execute();
  // Replaced by publish_asked: client ids ascend with time on one node only.
  await db.schema.createIndex("publish_newest").on("publish").columns(["stream_id", "client_id"]).execute();
  // Live streams of an organisation, and recently changed ones, are few among many.
  await sql`create index stream_live on stream (organisation_id, created_at) where state = 'live'`.execute(db);
  await db.schema.createIndex("stream_changed").on("stream").columns(["organisation_id", "updated_at"]).execute();
}

/** Migration 0016-publish-timeline. */
export async function publishTimeline(db: Kysely<unknown>): Promise<void> {
  for (const name of ["publish", "outbox"]) await db.schema.alterTable(name).addColumn("trace", "text").execute();
  await db.schema
    .createTable("publish_timeline")
    .addColumn("client_id", "bigint", (column) =>
      column.primaryKey().references("publish.client_id").onDelete("cascade"),
    )
    .addColumn("kept", "text", (column) => column.notNull())
    .execute();
}

/** Migration 0019-backup-publishes: at most one of each kind is live under a name. */
export async function backupPublishes(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable("publish")
    .addColumn("backup", "integer", (column) => column.notNull().defaultTo(0))
    .execute();
  await sql`drop index publish_name`.execute(db);
  await sql`
    create unique index publish_name on publish (name, backup) where state = 'live' and epoch is not null
  `.execute(db);
}

/** Migration 0017-held-publishes: which publish continues a lost one, and how long a stream's upstreams and players are
 *  held. */
export async function heldPublishes(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("stream").addColumn("hold_s", "integer").execute();
  await db.schema.alterTable("publish").addColumn("continues", "bigint").execute();
}

/** Migration 0021-publish-asked: the publishes of a stream, newest first, whichever nodes they were on. */
export const PUBLISH_ASKED: readonly Index[] = [
  { name: "publish_asked", on: "publish (stream_id, asked_at, client_id)" },
];

/** The rest of it: the index that it replaces. */
export async function publishAsked(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex("publish_newest").execute();
}

/** Migration 0027-publish-ending: who ended a publish, in whose words, and until when its stream is refused after that. */
export async function publishEnding(db: Kysely<unknown>): Promise<void> {
  const texts = ["session", "end_code", "end_who", "end_detail"] as const;
  for (const name of texts) await db.schema.alterTable("publish").addColumn(name, "text").execute();
  await db.schema.alterTable("stream").addColumn("refused_until", "bigint").execute();
  await db.schema.alterTable("stream").addColumn("refused_reason", "text").execute();
  await db.schema.alterTable("kept_end").addColumn("ending", "text").execute();
}
