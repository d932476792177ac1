// Restores a backup of the embedded store where no store exists: verified first, then put in place completely or not at
// all.
import { closeSync, copyFileSync, existsSync, linkSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Kysely, sql } from "kysely";
import { ConfigInvalid, StoreFailed, StoreUnavailable } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";
import { lockDirectory } from "../files/directory-lock.ts";
import { syncPath } from "../files/synced.ts";
import { migrate } from "../migrations.ts";
import { RESTORING, removeLeftBehind } from "../new-store.ts";
import { makeFolder } from "../open.ts";
import type { Schema } from "../schema.ts";
import { openAlone } from "./location.ts";

/** Restores the backup `file` into `dataDir`, which must not contain a store nor be in use by a service, and migrates its tables. `check` is
 *  called with the store before it is put in place and throws to reject it; `keep` then installs its key and returns a
 *  function that removes the key again. Rejects with `ConfigInvalid` for a place or file that cannot be used and with
 *  `StoreUnavailable` for a backup that is broken or of a newer version of headgate. */
export async function restore(
  file: string,
  dataDir: string,
  { check, keep }: { check(db: Kysely<Schema>): Promise<void>; keep(): () => void },
): Promise<{ readonly streams: number }> {
  const path = join(dataDir, "headgate.db");
  // A write-ahead log left behind would be applied to the restored file.
  if (existsSync(path) || existsSync(`${path}-wal`)) {
    throw new ConfigInvalid(
      `${dataDir} already holds a store: stop its service, move headgate.db and headgate.db-wal away, and restore again`,
    );
  }
  if (!existsSync(file)) throw new ConfigInvalid(`${file} does not exist`);
  makeFolder(dataDir);
  const unlock = lockDirectory(dataDir, { creates: false });
  let folder: string | null = null;
  try {
    removeLeftBehind(dataDir, RESTORING);
    // On the same file system, so that the file can be linked into place in one step.
    folder = mkdtempSync(join(dataDir, RESTORING));
    const copy = join(folder, "headgate.db");
    closeSync(openSync(copy, "wx", 0o600));
    copyFileSync(file, copy);
    const streams = await inspected(folder, file, check);
    syncPath(copy);
    const forget = keep();
    try {
      linkSync(copy, path); // unlike a rename it never replaces an existing file
    } catch (cause) {
      forget();
      throw cause;
    }
    syncPath(dataDir);
    return { streams };
  } catch (cause) {
    if (cause instanceof StoreUnavailable || cause instanceof ConfigInvalid) throw cause;
    throw new StoreFailed(`the backup was not restored: ${reasonOf(cause)}`, { cause });
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true });
    unlock();
  }
}

/** Verifies the copy and counts its streams. */
async function inspected(folder: string, file: string, check: (db: Kysely<Schema>) => Promise<void>): Promise<number> {
  const store = await openAlone({ kind: "embedded", dataDir: folder }).catch((cause: unknown) => {
    throw new StoreUnavailable(`${file} is not a headgate backup, or is damaged: ${reasonOf(cause)}`, { cause });
  });
  try {
    const faults = await sql<{ quick_check: string }>`pragma quick_check(1)`
      .execute(store.db)
      .then(({ rows }) => rows.map((row) => row.quick_check).join())
      .catch(reasonOf);
    if (faults !== "ok") throw new StoreUnavailable(`${file} is not a headgate backup, or is damaged: ${faults}`);
    const tables = await sql`select 1 from sqlite_master where name = 'migration'`.execute(store.db);
    if (tables.rows.length === 0)
      throw new StoreUnavailable(`${file} is not a headgate backup: it has none of its tables`);
    await migrate(store.db as Kysely<unknown>, { alone: true });
    await check(store.db);
    const { streams } = await store.db
      .selectFrom("stream")
      .select((eb) => eb.fn.countAll<number>().as("streams"))
      .executeTakeFirstOrThrow();
    return Number(streams);
  } finally {
    await store.close();
  }
}
