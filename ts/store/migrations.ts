// The migrations that create the tables of schema.ts, oldest first. Forward only: a released migration never changes.
import { type Kysely, PostgresAdapter, sql } from "kysely";
import { StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { DELIVERY_SIZE_TABLES, deliveryResponses, deliveryShares, deliverySize } from "./delivery-size.ts";
import { RETENTION_INDEXES } from "./retention.ts";
import type { Schema } from "./schema.ts";
import { buildIndex, type Index } from "./tables/indexes.ts";
import { keptAnswerTable } from "./tables/kept-answer-table.ts";
import { identityProviders, logosAndPauses, MEMBERS, managementTables } from "./tables/management-tables.ts";
import { nodesByStart, nodeTables } from "./tables/node-tables.ts";
import { operatorOrganisation } from "./tables/operator-organisation.ts";
import { organisationLimits } from "./tables/organisation-limits.ts";
import { publishKeys } from "./tables/publish-key.ts";
import {
  backupPublishes,
  heldPublishes,
  PUBLISH_ASKED,
  publishAsked,
  publishEnding,
  publishHistory,
  publishTimeline,
} from "./tables/publish-tables.ts";
import { REFUSED_PUBLISHES, refusals } from "./tables/refusal-table.ts";
import { STREAM_LIST_TABLES, streamLists } from "./tables/stream-lists.ts";
import { streamTitles } from "./tables/stream-titles.ts";
import { TABLE_SHARE, tableShares } from "./tables/table-share-tables.ts";
import { revocationOrder, tokenRecords, tokenTables } from "./tables/token-tables.ts";
import { USAGE_SUM_TABLES, usageSums } from "./tables/usage-sums.ts";
import {
  OUTBOX_AGE,
  outboxRefusals,
  outboxTable,
  outboxTurns,
  webhookCopies,
  webhookTables,
} from "./tables/webhook-tables.ts";

export interface Migration {
  readonly name: string;
  /** Indexes on columns that exist already: built first, and without blocking writes where the store can. */
  readonly indexes?: readonly Index[];
  readonly up: (db: Kysely<unknown>) => Promise<void>;
}

/** Told the name of each migration before it runs. */
export type Migrating = (name: string) => void;

export const MIGRATIONS: readonly Migration[] = [
  { name: "0001-first-tables", up: firstTables },
  { name: "0002-webhook", up: webhookTables },
  { name: "0003-management", up: managementTables },
  { name: "0004-tokens", up: tokenTables },
  { name: "0005-stream-upstreams", up: streamUpstreams },
  { name: "0006-revocation-order", up: revocationOrder },
  { name: "0007-outbox-turns", up: outboxTurns },
  { name: "0008-retention", indexes: RETENTION_INDEXES, up: async () => {} },
  { name: "0009-upstream-label", up: upstreamLabel },
  { name: "0010-delivery-size", up: deliverySize },
  { name: "0011-kept-answers", up: keptAnswerTable },
  { name: "0012-outbox-age", indexes: OUTBOX_AGE, up: async () => {} },
  { name: "0013-publish-history", up: publishHistory },
  { name: "0014-nodes", up: nodeTables },
  { name: "0015-node-started", up: nodesByStart },
  { name: "0016-publish-timeline", up: publishTimeline },
  { name: "0017-held-publishes", up: heldPublishes },
  { name: "0018-organisation-limits", up: organisationLimits },
  { name: "0019-backup-publishes", up: backupPublishes },
  { name: "0020-outbox-refusals", up: outboxRefusals },
  { name: "0021-publish-asked", indexes: PUBLISH_ASKED, up: publishAsked },
  { name: "0022-delivery-shares", up: deliveryShares },
  { name: "0023-operator", up: operatorOrganisation },
  { name: "0024-stream-lists", up: streamLists },
  { name: "0025-usage-sums", up: usageSums },
  { name: "0026-table-shares", up: tableShares },
  { name: "0027-publish-ending", up: publishEnding },
  { name: "0029-publish-key", up: publishKeys },
  { name: "0030-refusals", indexes: REFUSED_PUBLISHES, up: refusals },
  { name: "0031-stream-titles", up: streamTitles },
  { name: "0032-delivery-responses", up: deliveryResponses },
  { name: "0033-tokens", up: tokenRecords },
  { name: "0034-identity-provider", up: identityProviders },
  { name: "0035-webhook-copies", up: webhookCopies },
  { name: "0036-logos-and-pauses", up: logosAndPauses },
  { name: "0037-members", indexes: MEMBERS, up: async () => {} },
];

/** The tables whose rows are written by triggers on other tables. */
export const TRIGGER_TABLES: readonly string[] = [
  ...DELIVERY_SIZE_TABLES,
  ...STREAM_LIST_TABLES,
  ...USAGE_SUM_TABLES,
  TABLE_SHARE,
];

/** Recorded in the bookkeeping table, after all migrations, while a copy into the store is incomplete (copy/copy.ts).
 *  Every version of headgate refuses such a store, including those that do not know the name. */
export const UNFINISHED_COPY = "copy-unfinished";

/** The bookkeeping table, which is not part of the service's schema. */
interface Bookkeeping {
  migration: { position: number; name: string };
}

export interface MigrateOptions {
  /** No other process uses the store; otherwise nothing may be changed. */
  readonly alone: boolean;
  /** Whether the store must be there already, as opposed to being created. */
  readonly exists?: boolean;
  /** The store was marked by `markUnfinished`, and is filled by this process. */
  readonly isCopy?: boolean;
  readonly migrating?: Migrating;
}

/** Runs pending migrations, each in one transaction with its record. Rejects with `StoreUnavailable` when the store was
 *  created by a newer version of headgate, when it is older and in use, or when something else is there. */
export async function migrate(
  db: Kysely<unknown>,
  options: MigrateOptions,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const isStore = options.isCopy || (await requireOwnTables(db, "the store", migrations));
  if (options.exists && !isStore) {
    throw new StoreUnavailable(
      "the store is not complete: a copy or a first start was interrupted. Remove it, then copy again, or start for a new, empty store",
    );
  }
  if (options.alone) await createBookkeeping(db);
  const recorded = await (db as Kysely<Bookkeeping>).selectFrom("migration").selectAll().orderBy("position").execute();
  const done = options.isCopy ? recorded.filter(({ name }) => name !== UNFINISHED_COPY) : recorded;
  for (const [position, { name }] of done.entries()) {
    if (name === UNFINISHED_COPY) {
      throw new StoreUnavailable("the store is an incomplete copy of an interrupted run: remove it, then copy again");
    }
    if (migrations[position]?.name !== name) {
      throw new StoreUnavailable(
        `the store was created by a newer headgate (it has the migration ${name}): update headgate`,
      );
    }
  }
  if (!options.alone && done.length < migrations.length) {
    throw new StoreUnavailable("the running service is older than this command; restart the service first");
  }
  for (const [position, { name, indexes = [], up }] of migrations.entries()) {
    if (position < done.length) continue;
    options.migrating?.(name);
    for (const index of indexes) await buildIndex(db, index);
    await db.transaction().execute(async (trx) => {
      await up(trx);
      await (trx as Kysely<Bookkeeping>).insertInto("migration").values({ position, name }).execute();
    });
  }
}

async function createBookkeeping(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("migration")
    .ifNotExists()
    .addColumn("position", "integer", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.notNull())
    .execute();
}

/** The first thing that a copy writes, in one transaction: from then on nobody opens its target. */
export async function markUnfinished(db: Kysely<unknown>): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await createBookkeeping(trx);
    const mark = { position: MIGRATIONS.length, name: UNFINISHED_COPY };
    await (trx as Kysely<Bookkeeping>).insertInto("migration").values(mark).execute();
  });
}

/** Whether there is a store, complete or not; false where there is nothing at all. Rejects with `StoreUnavailable` when
 *  there are tables, but not those of a store. `where`: for people. */
export async function requireOwnTables(
  db: Kysely<unknown>,
  where: string,
  [migration]: readonly Migration[] = MIGRATIONS,
): Promise<boolean> {
  const tables = await tableNames(db);
  const names = tables.filter((name) => name !== "migration");
  const first = tables.length > names.length ? await firstRecord(db, where) : undefined;
  if (first !== undefined && [migration?.name, UNFINISHED_COPY].includes(first)) return true;
  const found = first === undefined ? names.slice(0, 3).join(", ") : `migration, with the row ${first}`;
  if (found === "") return false;
  throw new StoreUnavailable(
    `${where} holds tables that are not those of headgate (${found}), and nothing is created beside them: use an empty database or schema, or check which one is meant`,
  );
}

async function firstRecord(db: Kysely<unknown>, where: string): Promise<string | undefined> {
  try {
    const rows = (db as Kysely<Bookkeeping>).selectFrom("migration").select("name");
    return (await rows.orderBy("position").limit(1).executeTakeFirst())?.name;
  } catch (cause) {
    if (!/column/.test(reasonOf(cause))) throw cause;
    throw new StoreUnavailable(
      `${where} holds a table named migration that is not headgate's: use an empty database or schema, or check which one is meant`,
      { cause },
    );
  }
}

/** Those of extensions do not count. */
async function tableNames(db: Kysely<unknown>): Promise<readonly string[]> {
  const names =
    db.getExecutor().adapter instanceof PostgresAdapter
      ? sql<{ name: string }>`
          select relname as name from pg_class
          where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p')
            and not exists (select 1 from pg_depend where objid = pg_class.oid and deptype = 'e') order by relname`
      : sql<{ name: string }>`
          select name from sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name`;
  return (await names.execute(db)).rows.map(({ name }) => name);
}

/** Runs `migrate` on a store that was just opened and is named `where`; closes the store when that fails. */
export async function upToDate(
  db: Kysely<Schema>,
  options: MigrateOptions,
  where: string,
  close: () => Promise<void>,
): Promise<void> {
  try {
    await migrate(db as Kysely<unknown>, options);
  } catch (cause) {
    await close();
    if (cause instanceof StoreUnavailable) throw new StoreUnavailable(`${where}: ${cause.message}`, { cause });
    throw new StoreUnavailable(`cannot update the tables in ${where}: ${reasonOf(cause)}`, { cause });
  }
}

async function firstTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("organisation")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("hash", "text", (column) => column.notNull().unique())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("plan", "text", (column) => column.notNull().check(sql`plan in ('trial', 'paid')`))
    .addColumn("enabled", "integer", (column) => column.notNull())
    .addColumn("webhook", "text")
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();

  await db.schema
    .createTable("api_key")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("role", "text", (column) => column.notNull().check(sql`role in ('administrator', 'user', 'readonly')`))
    .addColumn("hash", "text", (column) => column.notNull().unique())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("expires_at", "bigint")
    .addColumn("last_used_at", "bigint")
    .execute();

  await db.schema
    .createTable("stream")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("name", "text", (column) => column.notNull().unique())
    .addColumn("state", "text", (column) =>
      column.notNull().check(sql`state in ('created', 'live', 'ended', 'locked', 'deleted')`),
    )
    .addColumn("tags", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .addColumn("updated_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("stream_newest").on("stream").columns(["organisation_id", "created_at"]).execute();

  await db.schema
    .createTable("publish")
    .addColumn("client_id", "bigint", (column) => column.primaryKey())
    .addColumn("organisation_id", "text", (column) => column.notNull().references("organisation.id"))
    .addColumn("stream_id", "text", (column) => column.notNull().references("stream.id"))
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("app", "text", (column) => column.notNull())
    .addColumn("arguments", "text")
    .addColumn("address", "text", (column) => column.notNull())
    .addColumn("webhook", "text")
    .addColumn("state", "text", (column) => column.notNull().check(sql`state in ('asking', 'denied', 'live', 'ended')`))
    .addColumn("asked_at", "bigint", (column) => column.notNull())
    .addColumn("accepted_at", "bigint")
    .addColumn("ended_at", "bigint")
    .addColumn("end_reason", "text")
    .addColumn("bytes_in", "bigint", (column) => column.notNull())
    .addColumn("bytes_out", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("publish_of_stream").on("publish").columns(["stream_id", "state"]).execute();
  // Few are open at a time; recovery and lists of running publishes read only those.
  await sql`create index publish_open on publish (client_id) where state in ('asking', 'live')`.execute(db);

  await outboxTable(db, "outbox");
  await sql`create index outbox_due on outbox (next_attempt_at) where delivered_at is null and given_up_at is null`.execute(
    db,
  );

  await db.schema
    .createTable("sequence")
    .addColumn("name", "text", (column) => column.primaryKey())
    .addColumn("next", "bigint", (column) => column.notNull())
    .execute();

  await db.schema
    .createTable("token_key")
    .addColumn("kid", "text", (column) => column.primaryKey())
    .addColumn("alg", "text", (column) => column.notNull())
    .addColumn("public_jwk", "text", (column) => column.notNull())
    .addColumn("private_key", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull().check(sql`state in ('next', 'active', 'retired')`))
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
}

/** URLs contain stream keys, so they are sealed (secret-box.ts). */
async function streamUpstreams(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("stream_upstream")
    .addColumn("id", "text", (column) => column.primaryKey())
    .addColumn("stream_id", "text", (column) => column.notNull().references("stream.id"))
    .addColumn("url", "text", (column) => column.notNull())
    .addColumn("created_at", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("upstream_of_stream").on("stream_upstream").column("stream_id").execute();
}

/** The customer's label of an upstream: its URL, which contains a stream key, is never shown. */
async function upstreamLabel(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable("stream_upstream").addColumn("label", "text").execute();
}
