// Further tables of the webhook: secrets, per-organisation settings, and the delivery log.
import { type Kysely, sql } from "kysely";
import type { Index } from "./indexes.ts";

/** Migration 0002-webhook. */
export async function webhookTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("webhook_secret")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("sealed", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint")
    .execute();
  // Only one secret can be current, even with concurrent writers.
  await sql`create unique index webhook_secret_current on webhook_secret (organisation_id) where expires_at is null`.execute(
    db,
  );

  await db.schema
    .createTable("organisation_setting")
    .addColumn("organisation_id", "text", (column) => column.primaryKey().references("organisation.id"))
    .addColumn("settings", "text", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();

  await db.schema
    .createTable("delivery")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("client_id", "bigint", (column) => column.notNull())
    .addColumn("call", "text", (column) => column.notNull())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("url", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addColumn("outcome", "text", (column) => column.notNull())
    .addColumn("status", "integer")
    .addColumn("reason", "text")
    .addColumn("latency_ms", "integer", (column) => column.notNull())
    .addColumn("attempts", "integer", (column) => column.notNull())
    .addColumn("first_at", "bigint", (column) => column.notNull())
    .addColumn("last_at", "bigint", (column) => column.notNull())
    .addColumn("bytes", "integer", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("delivery_newest").on("delivery").columns(["organisation_id", "last_at"]).execute();
  await db.schema.createIndex("delivery_of_publish").on("delivery").columns(["client_id", "call"]).execute();
  await db.schema.createIndex("delivery_oldest").on("delivery").columns(["last_at", "bytes"]).execute();
}

/** The number of pending events, and the age of the oldest, are read from the index alone. */
export const OUTBOX_AGE: readonly Index[] = [
  { name: "outbox_age", on: "outbox (created_at) where delivered_at is null and given_up_at is null" },
];

/** Events are delivered organisation by organisation, so that none delays the others. */
export async function outboxTurns(db: Kysely<unknown>): Promise<void> {
  await sql`
    create index outbox_turn on outbox (organisation_id, next_attempt_at, client_id)
    where delivered_at is null and given_up_at is null
  `.execute(db);
}

/** Migration 0020-outbox-refusals: a 4xx counts only if others came before it in a row. */
export async function outboxRefusals(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable("outbox")
    .addColumn("refusals", "integer", (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema.alterTable("outbox").addColumn("refused_since", "bigint").execute();
}
