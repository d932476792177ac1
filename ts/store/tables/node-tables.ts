// Tables for several nodes on one store: the nodes, the owner of each publish and of each pending event, and at most
// one live publish of a name.
import { type Kysely, sql } from "kysely";

/** Migration 0014-nodes. */
export async function nodeTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("node")
    .addColumn("epoch", "bigint", (column) => column.primaryKey())
    .addColumn("name", "text", (column) => column.notNull())
    .addColumn("state", "text", (column) => column.notNull().check(sql`state in ('up', 'draining', 'stopped', 'lost')`))
    .addColumn("beats", "bigint", (column) => column.notNull())
    .addColumn("beat_at", "bigint", (column) => column.notNull())
    .addColumn("started_at", "bigint", (column) => column.notNull())
    .addColumn("version", "text", (column) => column.notNull())
    .addColumn("status", "text", (column) => column.notNull())
    .execute();
  // At most one running node of a name; dead nodes are many and are never searched by name.
  await sql`create unique index node_up on node (name) where state in ('up', 'draining')`.execute(db);

  await db.schema
    .createTable("kept_end")
    .addColumn("client_id", "bigint", (column) => column.primaryKey())
    .addColumn("epoch", "bigint", (column) => column.notNull())
    .execute();
  await db.schema.createIndex("kept_end_of_node").on("kept_end").column("epoch").execute();

  await db.schema.alterTable("publish").addColumn("epoch", "bigint").execute();
  await db.schema
    .alterTable("publish")
    .addColumn("bytes_elsewhere", "bigint", (column) => column.notNull().defaultTo(0))
    .execute();
  // Rows of the version before have no epoch: in that version a name could be live twice during a replacement.
  await sql`
    create unique index publish_name on publish (name) where state = 'live' and epoch is not null
  `.execute(db);

  await db.schema.alterTable("outbox").addColumn("epoch", "bigint").execute();
  await sql`drop index outbox_turn`.execute(db);
  await sql`
    create index outbox_turn on outbox (epoch, organisation_id, next_attempt_at, client_id)
    where delivered_at is null and given_up_at is null
  `.execute(db);
}

/** Migration 0015-node-started: the index that the retention scans, on a column that heartbeats do not change, so that
 *  PostgreSQL can keep updating rows in place. */
export async function nodesByStart(db: Kysely<unknown>): Promise<void> {
  await db.schema.createIndex("node_started").on("node").column("started_at").execute();
}
