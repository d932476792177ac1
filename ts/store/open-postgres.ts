// Opens the store in a PostgreSQL database: one service per node name, migrated tables, functions that lists need.
import { type Dialect, type Kysely, sql } from "kysely";
import { StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { type Migrating, requireOwnTables, upToDate } from "./migrations.ts";
import type { ServerClient } from "./postgres/connecting.ts";
import { parseDatabaseUrl } from "./postgres/database-url.ts";
import { type ServiceLock, takeServiceLock, withMigrationLock } from "./postgres/lock.ts";
import { connectionDialect, endPool, openPool, postgresDialect } from "./postgres.ts";
import { openReads } from "./postgres-reads.ts";
import type { Schema } from "./schema.ts";
import { RetryingKysely } from "./statements/retrying.ts";
import type { Store } from "./store.ts";
import { addJsonEach } from "./tables/json-each.ts";

/** The oldest supported PostgreSQL, in the server's own numbering. */
const VERSION_AT_LEAST = 130_000;

/** Connections for signs of life: one statement at a time. */
const LIFELINES = 1;

interface DatabaseConnections {
  /** The database's name for people, never with the password. */
  readonly name: string;
  readonly lock: ServiceLock;
  readonly dialect: Dialect;
  disconnect(): Promise<void>;
}

/** `node`: the name of a service's node; null for a command. Rejects with `StoreUnavailable`. */
export async function openPostgres(
  databaseUrl: string,
  node: string | null,
  migrating: Migrating = () => {},
): Promise<Store> {
  const { name, lock, dialect, disconnect } = await connectTo(databaseUrl, node);
  if (!lock.held && node !== null) {
    throw new StoreUnavailable(
      `${name} is in use by another headgate process as node ${node}; give each its node.name`,
    );
  }
  const db = new RetryingKysely<Schema>({ dialect });
  const lifelines = openPool(databaseUrl, { most: LIFELINES });
  const lifeline = new RetryingKysely<Schema>({ dialect: postgresDialect(lifelines) });
  const reads = openReads<Schema>(databaseUrl);
  const close = async () => {
    await reads.close();
    await db.destroy();
    await lifeline.destroy();
    await endPool(lifelines);
    await disconnect();
  };
  const update = async (by: Kysely<Schema>) => {
    await requireVersion(by);
    await requireOwnTables(by as Kysely<unknown>, name);
    if (lock.held) await addJsonEach(by);
    await upToDate(by, { alone: lock.held, migrating }, name, async () => {});
  };
  const updateAlone = (client: ServerClient) =>
    update(new RetryingKysely<Schema>({ dialect: connectionDialect(client) }));
  try {
    await (lock.held ? withMigrationLock(databaseUrl, updateAlone) : update(db));
  } catch (error) {
    await close();
    throw error;
  }
  return { db, lifeline, reads: reads.db, close, failed: lock.lost, rename: lock.rename };
}

/** Connects to a database and takes the lock of a node or, with `node` null, of a command, unless it is held. Opens no
 *  connection but the lock's. Rejects with `StoreUnavailable` when the server cannot be reached. */
export async function connectTo(databaseUrl: string, node: string | null): Promise<DatabaseConnections> {
  const name = nameOfDatabase(databaseUrl);
  const lock = await takeServiceLock(databaseUrl, node).catch((cause: unknown) => {
    throw new StoreUnavailable(`cannot use ${name}: ${reasonOf(cause)}`, { cause });
  });
  const pool = openPool(databaseUrl);
  const disconnect = async () => {
    await endPool(pool);
    await lock.release();
  };
  return { name, lock, dialect: postgresDialect(pool), disconnect };
}

/** Throws `StoreUnavailable` when PostgreSQL is too old. */
export async function requireVersion(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version_num') as version`.execute(db);
  if (Number(rows[0]?.version) < VERSION_AT_LEAST) {
    throw new StoreUnavailable(`PostgreSQL ${VERSION_AT_LEAST / 10_000} or newer is needed`);
  }
}

/** The name of a database, never with the password. Throws `StoreUnavailable` for a URL that cannot be used. */
export function nameOfDatabase(databaseUrl: string): string {
  try {
    const { database, servers } = parseDatabaseUrl(databaseUrl);
    return `database ${database} at ${servers.map(({ address }) => address).join(", ")}`;
  } catch (cause) {
    throw new StoreUnavailable(`the database's URL ${reasonOf(cause)}`, { cause });
  }
}
