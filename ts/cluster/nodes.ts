// The rows of nodes: one per start of a service on this store. Each function is one statement or one transaction.
import { type Kysely, type RawBuilder, SqliteAdapter, sql } from "kysely";
import type { NodeTable, Schema } from "../store/schema.ts";

const SEQUENCE = "node_epoch";
/** States in which a node counts as present. */
const PRESENT = ["up", "draining"] as const;
const isPresent = sql<boolean>`state in (${sql.join(PRESENT.map((word) => sql.lit(word)))})`;
/** Milliseconds since 1970 on the clock of PostgreSQL, or on this machine's clock when the store is a file. */
function storeNow(db: Kysely<Schema>): RawBuilder<number> {
  return db.getExecutor().adapter instanceof SqliteAdapter
    ? sql<number>`cast((julianday('now') - 2440587.5) * 86400000 as integer)`
    : sql<number>`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`;
}

/** The status that a node publishes. */
export interface NodeStatus {
  /** Base URL of its channel for other nodes; null while it has none. */
  readonly channel: string | null;
  /** The addresses for clients: base URL of HTTP, and `rtmp://host:port`. */
  readonly http: string | null;
  readonly rtmp: string | null;
  /** Absent in the status of an older version. */
  readonly rtmps?: string | null;
  /** RTMP port for other nodes, on the host of its channel, for when `rtmp` leads to another process; absent in the
   *  status of an older version. */
  readonly pullPort?: number | null;
  /** Number of publishes running on it. */
  readonly publishes: number;
  /** Load of its busiest media worker, 0 to 1. */
  readonly load: number;
  /** Why it has no room for a new publish; null while it has. Absent in the status of an older version. */
  readonly full?: string | null;
}

export interface Node extends NodeStatus {
  readonly epoch: number;
  readonly name: string;
  readonly state: NodeTable["state"];
  readonly beats: number;
  /** Time of the last heartbeat, and of the start, epoch ms on the store's clock. */
  readonly beatAt: number;
  readonly startedAt: number;
  readonly version: string;
}

interface NewNode {
  readonly name: string;
  readonly version: string;
  readonly status: NodeStatus;
}

/** Assigns an epoch to a starting node, and takes its name from a former holder, which the caller knows to be gone. */
export async function register(db: Kysely<Schema>, node: NewNode): Promise<number> {
  return await insert(db, node, storeNow(db), (query) => query.where("name", "=", node.name));
}

/** The same where no other node can exist: any former one is gone. `now`: epoch ms; by default the store's clock. */
export async function registerAlone(db: Kysely<Schema>, node: NewNode, now?: number): Promise<number> {
  const at = now === undefined ? storeNow(db) : sql<number>`cast(${now} as bigint)`;
  return await insert(db, node, at, (query) => query);
}

/** Renames a node, and takes the name from a former holder, which the caller knows to be gone. */
export async function renameNode(db: Kysely<Schema>, epoch: number, name: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const others = trx.updateTable("node").set({ state: "lost" }).where("epoch", "!=", epoch);
    await others.where("state", "in", PRESENT).where("name", "=", name).execute();
    await trx.updateTable("node").set({ name }).where("epoch", "=", epoch).execute();
  });
}

/** The name of a node that has left its own to its successor process; without an epoch, how all of them begin. */
export const formerName = (name: string, epoch: number | "") => `${name}@${epoch}`;

async function insert(
  db: Kysely<Schema>,
  { name, version, status }: NewNode,
  at: RawBuilder<number>,
  gone: <Query extends { where(column: "name", is: "=", name: string): Query }>(query: Query) => Query,
): Promise<number> {
  return await db.transaction().execute(async (trx) => {
    const present = trx.updateTable("node").set({ state: "lost" }).where("state", "in", PRESENT);
    await gone(present).execute();
    const { next: epoch } = await trx
      .insertInto("sequence")
      .values({ name: SEQUENCE, next: 1 })
      .onConflict((conflict) => conflict.column("name").doUpdateSet((eb) => ({ next: eb("sequence.next", "+", 1) })))
      .returning("next")
      .executeTakeFirstOrThrow();
    await trx
      .insertInto("node")
      .values({
        epoch,
        name,
        version,
        state: "up",
        beats: 0,
        beat_at: at,
        started_at: at,
        status: JSON.stringify(status),
      })
      .execute();
    return Number(epoch);
  });
}

/** Writes a heartbeat. Resolves with the store's clock, epoch ms; null when others have declared the node dead. "up"
 *  does not change the state, since an operator may have set it to draining. */
export async function beat(db: Kysely<Schema>, epoch: number, state: "up" | "draining", status: NodeStatus) {
  const row = await db
    .updateTable("node")
    .set((eb) => ({ beats: eb("beats", "+", 1), beat_at: storeNow(db), status: JSON.stringify(status) }))
    .$if(state === "draining", (update) => update.set({ state }))
    .where("epoch", "=", epoch)
    .where("state", "in", PRESENT)
    .returning("beat_at")
    .executeTakeFirst();
  return row === undefined ? null : Number(row.beat_at);
}

/** The present nodes, oldest first. */
export async function presentNodes(db: Kysely<Schema>): Promise<readonly Node[]> {
  const rows = await db.selectFrom("node").selectAll().where("state", "in", PRESENT).orderBy("epoch").execute();
  return rows.map(nodeOf);
}

/** The present node of each name, else its latest start, by name: a successor process that failed has started later than
 *  the service, which continues. Those that left more than `goneMs` ago are left out. With the store's clock, epoch ms. */
export async function namedNodes(
  db: Kysely<Schema>,
  goneMs: number,
): Promise<readonly (Node & { readonly now: number })[]> {
  const rows = await db
    .selectFrom("node")
    .selectAll()
    .select(storeNow(db).as("now"))
    .where("epoch", "in", (eb) =>
      eb
        .selectFrom("node")
        .select(sql<number>`coalesce(max(case when ${isPresent} then epoch end), max(epoch))`.as("epoch"))
        .groupBy("name"),
    )
    .where((eb) => eb.or([eb("state", "in", PRESENT), eb("beat_at", ">", sql<number>`${storeNow(db)} - ${goneMs}`)]))
    .orderBy("name")
    .execute();
  return rows.map(({ now, ...row }) => ({ ...nodeOf(row), now: Number(now) }));
}

/** The present node of an embedded store, else its latest start; null before the first. While an upgrade has left others
 *  running beside it, it is the latest of them. */
export async function lastNode(db: Kysely<Schema>): Promise<Node | null> {
  const presence = sql`case when ${isPresent} then 0 else 1 end`;
  const row = await db.selectFrom("node").selectAll().orderBy(presence).orderBy("epoch", "desc").executeTakeFirst();
  return row === undefined ? null : nodeOf(row);
}

/** Sets whether a node accepts new publishes; the node reads this at its next heartbeat. False when no such node is
 *  present. */
export async function markDraining(db: Kysely<Schema>, name: string, drains: boolean): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("node")
    .set({ state: drains ? "draining" : "up" })
    .where("name", "=", name)
    .where("state", "in", PRESENT)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

function nodeOf({ status, beat_at, started_at, ...row }: NodeTable): Node {
  return {
    ...row,
    ...(JSON.parse(status) as NodeStatus),
    epoch: Number(row.epoch),
    beats: Number(row.beats),
    beatAt: Number(beat_at),
    startedAt: Number(started_at),
  };
}

/** Declares a node dead unless it has sent a heartbeat since it was read. If several nodes do so, the result is true
 *  for one of them. */
export async function takeForDead(db: Kysely<Schema>, node: Pick<Node, "epoch" | "beats">): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("node")
    .set({ state: "lost" })
    .where("epoch", "=", node.epoch)
    .where("beats", "=", node.beats)
    .where("state", "in", PRESENT)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Records that a node has stopped and owns no publish any more. */
export async function leave(db: Kysely<Schema>, epoch: number): Promise<void> {
  await db
    .updateTable("node")
    .set({ state: "stopped" })
    .where("epoch", "=", epoch)
    .where("state", "in", PRESENT)
    .execute();
}
