// Backs up the embedded store while a service uses it: a consistent snapshot, complete or not there at all.
import { closeSync, existsSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import Database from "libsql";
import { ConfigInvalid, StoreFailed, StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { syncPath } from "./files/synced.ts";

/** How long the backup waits for a writer, ms. */
const BUSY_TIMEOUT_MS = 5_000;

/** Copies the store of `dataDir` to `file`, which must not exist yet; readable only by its owner. Returns its size in
 *  bytes. The key file is not included: without it nobody can read the secrets of a copy. */
export function backUp(dataDir: string, file: string): number {
  const path = resolve(file);
  const source = join(dataDir, "headgate.db");
  if (existsSync(path)) throw new ConfigInvalid(`${path} already exists; name a file that does not`);
  if (!existsSync(source)) throw new StoreUnavailable(`there is no store in ${dataDir}`);
  const partial = `${path}.partial`;
  rmSync(partial, { force: true });
  try {
    closeSync(openSync(partial, "wx", 0o600)); // libsql would make it readable for everyone
  } catch (cause) {
    throw new ConfigInvalid(`cannot write ${partial}: ${reasonOf(cause)}`, { cause });
  }
  try {
    const db = new Database(source);
    try {
      db.prepare(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`).all();
      db.prepare("VACUUM INTO ?").run([partial]);
    } finally {
      db.close();
    }
    syncPath(partial);
    renameSync(partial, path);
    syncPath(dirname(path));
  } catch (cause) {
    rmSync(partial, { force: true });
    throw new StoreFailed(`the copy failed: ${reasonOf(cause)}`, { cause });
  }
  return statSync(path).size;
}
