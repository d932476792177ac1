// Holds a data directory for whatever puts a store there, with the same locks as a service (libsql-thread.mjs): a service
// whose files were moved away still runs on them, and would lose what it writes.
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import Database from "libsql";
import { StoreUnavailable } from "../../errors.ts";

const LOCKS = ["headgate.lock", "headgate-successor.lock"];

/** Locks the data directory and returns what releases it. Throws `StoreUnavailable` while a service, or another caller
 *  of this, uses it. */
export function lockDirectory(dataDir: string): () => void {
  const held: Database.Database[] = [];
  const release = () => {
    for (const lock of held) lock.close();
  };
  try {
    for (const name of LOCKS) {
      const path = join(dataDir, name);
      closeSync(openSync(path, "a", 0o600)); // libsql would make it readable for everyone
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
