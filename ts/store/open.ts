// Opens the store: the embedded one in the data directory, or a PostgreSQL database. The tables are the same.
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Worker } from "node:worker_threads";
import { StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { LibsqlKysely, startLibsqlThread } from "./libsql.ts";
import type { Access } from "./libsql-messages.ts";
import { type Migrating, upToDate } from "./migrations.ts";
import { createEmbedded } from "./new-store.ts";
import type { Schema } from "./schema.ts";
import { chargeStatement } from "./statements/reading.ts";
import type { Store } from "./store.ts";

export type { Store };

export interface StoreOptions {
  readonly dataDir: string;
  /** null for the embedded store. */
  readonly databaseUrl: string | null;
  /** `service`: one at a time. `successor`: beside the service that it replaces. `command`: may run beside a service;
   *  it may change rows, but then no tables. */
  readonly access?: Access;
  /** The node of a service, where several share a database. */
  readonly node?: { readonly name: string };
  /** Told what the opening waits for: that other processes finish, or the name of each migration. */
  readonly migrating?: Migrating;
  /** Threads to reuse for embedded stores that are opened one after another (`startLibsqlThread`). */
  readonly idleThreads?: Worker[];
}

/** Opens the store and migrates its tables; creates it where nothing of another one is. The data directory (created 0700)
 *  is needed for keys in any case. Every write is on disk when its promise resolves. Rejects with `StoreUnavailable`. */
export async function openStore({
  dataDir,
  databaseUrl,
  access = "service",
  node = { name: "headgate" },
  migrating = () => {},
  idleThreads,
}: StoreOptions): Promise<Store> {
  try {
    makeFolder(resolve(dataDir));
  } catch (cause) {
    throw new StoreUnavailable(`cannot create the data directory ${dataDir}: ${reasonOf(cause)}`, { cause });
  }
  if (databaseUrl === null) return await openEmbedded(dataDir, access, migrating, idleThreads);
  // Imported lazily, so that the driver is loaded only when needed.
  const { openPostgres } = await import("./open-postgres.ts");
  return await openPostgres(databaseUrl, access === "command" ? null : node.name, migrating);
}

/** Level by level: Node's own `recursive` never returns where a file system refuses the folder with ENOENT. */
export function makeFolder(path: string): void {
  if (existsSync(path)) return;
  makeFolder(dirname(path));
  mkdirSync(path, { mode: 0o700 });
}

async function openEmbedded(
  dataDir: string,
  access: Access,
  migrating: Migrating,
  idleThreads?: Worker[],
): Promise<Store> {
  if (!existsSync(join(dataDir, "headgate.db"))) {
    if (access === "successor") throw new StoreUnavailable(`headgate.db has been removed from ${dataDir}`);
    await createEmbedded(dataDir, migrating);
  }
  const thread = await startLibsqlThread(dataDir, access, idleThreads);
  const db = new LibsqlKysely<Schema>(thread);
  const close = async () => {
    await db.destroy();
    await thread.close(); // Kysely does not close drivers it never used
  };
  await upToDate(db, { alone: thread.alone, exists: true, migrating }, dataDir, close);
  const common = { db, lifeline: db, rename: async () => {} };
  // A command delays nobody's work.
  if (access === "command") return { ...common, reads: db, close, failed: thread.failed };
  const reader = await startLibsqlThread(dataDir, "reader", idleThreads).catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    ...common,
    reads: new LibsqlKysely<Schema>(reader, chargeStatement),
    async close() {
      await reader.close();
      await close();
    },
    failed: Promise.race([thread.failed, reader.failed]),
  };
}
