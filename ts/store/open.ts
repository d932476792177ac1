// Opens the store: the embedded one in the data directory, or a PostgreSQL database. The tables are the same.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Worker } from "node:worker_threads";
import { type Kysely, sql } from "kysely";
import { type StoreFailed, StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { LibsqlKysely, startLibsqlThread } from "./libsql.ts";
import type { Opening } from "./libsql-messages.ts";
import { migrate } from "./migrations.ts";
import { parseDatabaseUrl } from "./postgres/database-url.ts";
import { openPool, postgresDialect } from "./postgres.ts";
import { takeServiceLock, withMigrationLock } from "./postgres-lock.ts";
import { RetryingKysely } from "./retrying.ts";
import type { Schema } from "./schema.ts";

/** The oldest PostgreSQL whose SQL is all that we use, as the server numbers itself. */
const VERSION_AT_LEAST = 130_000;

/** The open store. */
export interface Store {
  readonly db: Kysely<Schema>;
  /** Finishes what was sent and gives the store back. */
  close(): Promise<void>;
  /** Resolves if the store dies while it is open; nothing works after that. */
  readonly failed: Promise<StoreFailed>;
  /** Gives up the name that this service has among those on the database, and takes another. Rejects with
   *  `StoreFailed` when somebody has that. */
  rename(node: string): Promise<void>;
}

export interface StoreOptions {
  readonly dataDir: string;
  /** null for the embedded store. */
  readonly databaseUrl: string | null;
  /** `service`: one at a time. `successor`: beside the service that it follows. `command`: beside a running service too;
   *  it may change rows, but no tables then. */
  readonly access?: Opening["access"];
  /** Of a service among those on one database. */
  readonly node?: { readonly name: string };
  /** Threads for embedded stores that are opened one after the other (`startLibsqlThread`). */
  readonly idleThreads?: Worker[];
}

/** Opens the store and brings its tables up to date; the data directory (created 0700) is needed for keys in any case.
 *  Everything written is on disk when its promise resolves. Rejects with `StoreUnavailable`. */
export async function openStore({
  dataDir,
  databaseUrl,
  access = "service",
  node = { name: "headgate" },
  idleThreads,
}: StoreOptions): Promise<Store> {
  try {
    makeFolder(resolve(dataDir));
  } catch (cause) {
    throw new StoreUnavailable(`cannot create the data directory ${dataDir}: ${reasonOf(cause)}`, { cause });
  }
  return databaseUrl === null
    ? await openEmbedded(dataDir, access, idleThreads)
    : await openPostgres(databaseUrl, access === "command" ? null : node.name);
}

/** Level by level: Node's own `recursive` never ends where a file system denies the folder with ENOENT. */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

async function openEmbedded(dataDir: string, access: Opening["access"], idleThreads?: Worker[]): Promise<Store> {
  const thread = await startLibsqlThread(dataDir, access, idleThreads);
  const db = new LibsqlKysely<Schema>(thread);
  const close = async () => {
    await db.destroy();
    await thread.close(); // Kysely forgets drivers it never used
  };
  await upToDate(db, thread.alone, dataDir, close);
  return { db, close, failed: thread.failed, rename: async () => {} };
}

/** `node`: the name of a service; null for a command. */
async function openPostgres(databaseUrl: string, node: string | null): Promise<Store> {
  const place = placeOf(databaseUrl);
  const lock = await takeServiceLock(databaseUrl, node).catch((cause: unknown) => {
    throw new StoreUnavailable(`cannot use ${place}: ${reasonOf(cause)}`, { cause });
  });
  if (!lock.held && node !== null) {
    throw new StoreUnavailable(
      `${place} is in use by another headgate process as node ${node}; give each its node.name`,
    );
  }
  const pool = openPool(databaseUrl);
  const db = new RetryingKysely<Schema>({ dialect: postgresDialect(pool) });
  const close = async () => {
    await db.destroy();
    if (!pool.ended) await pool.end(); // Kysely forgets drivers it never used
    await lock.release();
  };
  const update = async () => {
    await requireVersion(db);
    if (lock.held) await addFunctions(db);
    await upToDate(db, lock.held, place, async () => {});
  };
  try {
    await (lock.held ? withMigrationLock(databaseUrl, update) : update());
  } catch (error) {
    await close();
    throw error;
  }
  return { db, close, failed: lock.lost, rename: lock.rename };
}

async function upToDate(db: Kysely<Schema>, alone: boolean, place: string, close: () => Promise<void>): Promise<void> {
  try {
    await migrate(db as Kysely<unknown>, { alone });
  } catch (cause) {
    await close();
    if (cause instanceof StoreUnavailable) throw cause;
    throw new StoreUnavailable(`cannot update the tables in ${place}: ${reasonOf(cause)}`, { cause });
  }
}

/** Throws `StoreUnavailable` for a PostgreSQL that is too old. */
export async function requireVersion(db: Kysely<Schema>): Promise<void> {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version_num') as version`.execute(db);
  if (Number(rows[0]?.version) < VERSION_AT_LEAST) {
    throw new StoreUnavailable(`PostgreSQL ${VERSION_AT_LEAST / 10_000} or newer is needed`);
  }
}

/** Lists by tag ask `json_each` of a text, which PostgreSQL has only for json. */
async function addFunctions(db: Kysely<Schema>): Promise<void> {
  await sql`create or replace function json_each(list text) returns table (value text) language sql immutable
    as 'select json_array_elements_text(list::json)'`.execute(db);
}

/** The database by name, for people: never the password. Throws `StoreUnavailable` for a URL that cannot be used. */
export function placeOf(databaseUrl: string): string {
  try {
    const { database, servers } = parseDatabaseUrl(databaseUrl);
    return `database ${database} at ${servers.map(({ place }) => place).join(", ")}`;
  } catch (cause) {
    throw new StoreUnavailable(`the database's URL ${reasonOf(cause)}`, { cause });
  }
}
