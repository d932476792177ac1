// Puts the key file of a store where it will be used: readable only by its owner, synced to disk, and never replacing a
// different one.
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigInvalid } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";

/** Copies the key at `from` to `to`, unless it is there already; the returned function removes it again. Throws
 *  `ConfigInvalid` when a different key is there, or when it cannot be written. */
export function copyKeyFile(from: string, to: string): () => void {
  const key = readFileSync(from);
  if (existsSync(to)) {
    if (readFileSync(to).toString().trim() === key.toString().trim()) return () => {};
    throw new ConfigInvalid(`${to} holds a different key, which would be lost: move it away if no store needs it`);
  }
  try {
    const file = openSync(to, "wx", 0o600);
    try {
      writeSync(file, key);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    syncFolder(dirname(to));
  } catch (cause) {
    throw new ConfigInvalid(`cannot write ${to}: ${reasonOf(cause)}`, { cause });
  }
  return () => rmSync(to, { force: true });
}

/** Syncs a folder, so that files created or renamed in it survive a power failure. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
