// Creates the embedded store where there is none: completely or not at all, and never where anything of another one is.
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Kysely, sql } from "kysely";
import { StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { lockDirectory } from "./files/directory-lock.ts";
import { syncPath } from "./files/synced.ts";
import { LibsqlKysely, startLibsqlThread } from "./libsql.ts";
import { type Migrating, migrate } from "./migrations.ts";
import { KEY_FILE } from "./secret-box.ts";

/** How the names of folders begin in which a restore (copy/restore.ts), or this, prepares a store. */
export const RESTORING = "restoring-";
const CREATING = "creating-";

/** Puts a new, empty store into `dataDir`, which exists and has no headgate.db. Rejects with `StoreUnavailable`; unless
 *  the process is killed nothing is left then, and what is left of a killed one is removed by the next. */
export async function createEmbedded(dataDir: string, migrating: Migrating): Promise<void> {
  const path = join(dataDir, "headgate.db");
  requireNothing(dataDir);
  const unlock = lockFor(dataDir);
  try {
    if (existsSync(path)) return; // another process was faster
    removeLeftBehind(dataDir, CREATING);
    const folder = mkdtempSync(join(dataDir, CREATING));
    try {
      await fill(folder, migrating);
      // A file of its own: SQLite may still have the one that it created open, under the former name.
      const complete = join(folder, "complete");
      copyFileSync(join(folder, "headgate.db"), complete);
      chmodSync(complete, 0o600);
      syncPath(complete);
      renameSync(complete, path);
      syncPath(dataDir);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  } catch (cause) {
    throw new StoreUnavailable(`cannot create a store in ${dataDir}: ${reasonOf(cause)}`, { cause });
  } finally {
    unlock();
  }
}

/** Throws `StoreUnavailable` where a store has been, or was about to be. */
export function requireNothing(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  const refuse = (found: string, remedy: string) => {
    const reason = `${dataDir} has no store, but ${found}: no new store is created there`;
    throw new StoreUnavailable(`${reason}. ${remedy}`);
  };
  const [interrupted] = namesIn(dataDir, RESTORING);
  if (interrupted !== undefined)
    refuse(`${interrupted} of an interrupted restore`, "Run headgate restore again, or remove that folder");
  for (const name of ["headgate.db-wal", "headgate.db-journal"]) {
    if (existsSync(join(dataDir, name)))
      refuse(`${name} of one`, "Put headgate.db back beside it, or move that file away and restore a backup");
  }
  if (existsSync(join(dataDir, KEY_FILE)))
    refuse(
      `${KEY_FILE} of one`,
      `Set database_url if the store is in PostgreSQL, or put headgate.db back or restore a backup; for a new, empty store move ${KEY_FILE} away`,
    );
}

/** Removes the folders in which interrupted processes had prepared a store. */
export function removeLeftBehind(dataDir: string, prefix: string): void {
  for (const name of namesIn(dataDir, prefix)) rmSync(join(dataDir, name), { recursive: true, force: true });
}

function namesIn(folder: string, prefix: string): readonly string[] {
  return readdirSync(folder).filter((name) => name.startsWith(prefix));
}

function lockFor(dataDir: string): () => void {
  try {
    return lockDirectory(dataDir, { creates: true });
  } catch (cause) {
    if (cause instanceof StoreUnavailable) throw cause;
    throw new StoreUnavailable(`cannot open the locks in ${dataDir}: ${reasonOf(cause)}`, { cause });
  }
}

async function fill(folder: string, migrating: Migrating): Promise<void> {
  const thread = await startLibsqlThread(folder, "service");
  const db = new LibsqlKysely<unknown>(thread);
  try {
    // The whole file is synced at the end: until then nobody uses it. Without a write-ahead log it is complete by itself.
    await sql`pragma journal_mode = delete`.execute(db);
    await sql`pragma synchronous = off`.execute(db);
    await migrate(db as Kysely<unknown>, { alone: true, migrating });
  } finally {
    await db.destroy();
    await thread.close(); // Kysely does not close drivers it never used
  }
}
