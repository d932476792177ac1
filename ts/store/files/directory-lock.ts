// Holds a data directory for whatever puts a store there, with the same locks as a service (libsql-thread.mjs): a service
// whose files were moved away still runs on them, and would lose what it writes.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { StoreUnavailable } from "../../errors.ts";

const LOCKS = ["headgate.lock", "headgate-successor.lock"];

/** Locks the data directory and returns what releases it. Throws `StoreUnavailable` while a service, or another caller
 *  of this, uses it. Without the lock files no service has ever used it; `creates`: so they are created. */
export function lockDirectory(dataDir: string, { creates }: { readonly creates: boolean }): () => void {
  const held: Database.Database[] = [];
  const release = () => {
    for (const lock of held) lock.close();
  };
  try {
    for (const name of LOCKS) {
      const path = join(dataDir, name);
      if (!existsSync(path)) {
        if (!creates) continue;
        closeSync(openSync(path, "a", 0o600)); // libsql would make it readable for everyone
      }
      const lock = new Database(path);
      held.push(lock);
      lock.exec("BEGIN EXCLUSIVE");
    }
  } catch (cause) {
    release();
    if ((cause as { readonly code?: unknown }).code !== "SQLITE_BUSY") throw cause;
    throw new StoreUnavailable(`the data directory ${dataDir} is in use by another headgate process: stop it first`, {
      cause,
    });
  }
  return release;
}
