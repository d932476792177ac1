// Further tables of the webhook: secrets, per-organisation settings, and the delivery log.
import { type Kysely, sql } from "kysely";
import type { OutboxTable, WebhookSecretTable } from "../schema.ts";
import type { Index } from "./indexes.ts";

/** The second webhook of an organisation, which gets copies and decides nothing; without a row there is none. */
export interface WebhookCopyTable {
  organisation_id: string;
  url: string;
  /** What it gets: copies of the calls to the webhook and alerts, or alerts alone. */
  events: "all" | "alerts";
  updated_at: number;
}

export interface WebhookCopyTables {
  webhook_copy: WebhookCopyTable;
  webhook_copy_secret: WebhookSecretTable;
  webhook_copy_outbox: OutboxTable;
}

/** Migration 0002-webhook. */
export async function webhookTables(db: Kysely<unknown>): Promise<void> {
  await secretTable(db, "webhook_secret");

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

/** Migration 0035-webhook-copies: the second webhook, its secrets and its events; alerts among the events of the first. */
export async function webhookCopies(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("webhook_copy")
    .addColumn("organisation_id", "text", (column) => column.primaryKey().references("organisation.id"))
    .addColumn("url", "text", (column) => column.notNull())
    .addColumn("events", "text", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();
  await secretTable(db, "webhook_copy_secret");
  await outboxTable(db, "webhook_copy_outbox");
  const added = db.schema.alterTable("webhook_copy_outbox");
  await added.addColumn("refusals", "integer", (column) => column.notNull().defaultTo(0)).execute();
  for (const column of ["refused_since", "epoch"]) await added.addColumn(column, "bigint").execute();
  for (const column of ["trace", "call"]) await added.addColumn(column, "text").execute();
  await db.schema.alterTable("outbox").addColumn("call", "text").execute();
  await db.schema.alterTable("delivery").addColumn("is_copy", "integer").execute();
  const waits = "delivered_at is null and given_up_at is null";
  for (const index of [
    `webhook_copy_due on webhook_copy_outbox (next_attempt_at) where ${waits}`,
    `webhook_copy_turn on webhook_copy_outbox (epoch, organisation_id, next_attempt_at, client_id) where ${waits}`,
    `webhook_copy_age on webhook_copy_outbox (created_at) where ${waits}`,
    "webhook_copy_delivered on webhook_copy_outbox (delivered_at) where delivered_at is not null",
    "webhook_copy_given_up on webhook_copy_outbox (given_up_at) where given_up_at is not null",
    `webhook_copy_alerts on webhook_copy_outbox (organisation_id, client_id, created_at) where call = 'health' and ${waits}`,
    `outbox_alerts on outbox (organisation_id, client_id, created_at) where call = 'health' and ${waits}`,
    "delivery_copies on delivery (organisation_id, last_at desc, id) where is_copy = 1",
  ]) {
    await sql.raw(`create index ${index}`).execute(db);
  }
}

/** The columns of migration 0001. */
export async function outboxTable(db: Kysely<unknown>, name: "outbox" | "webhook_copy_outbox"): Promise<void> {
  await db.schema
    .createTable(name)
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("client_id", "bigint", (column) => column.notNull())
    .addColumn("url", "text", (column) => column.notNull())
    .addColumn("body", "text", (column) => column.notNull())
    .addColumn("attempts", "integer", (column) => column.notNull().defaultTo(0))
    .addColumn("next_attempt_at", "bigint", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("delivered_at", "bigint")
    .addColumn("given_up_at", "bigint")
    .addColumn("last_status", "integer")
    .execute();
}

async function secretTable(db: Kysely<unknown>, name: "webhook_secret" | "webhook_copy_secret"): Promise<void> {
  await db.schema
    .createTable(name)
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("sealed", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint")
    .execute();
  // Only one secret can be current, even with concurrent writers.
  const current = `create unique index ${name}_current on ${name} (organisation_id) where expires_at is null`;
  await sql.raw(current).execute(db);
}
