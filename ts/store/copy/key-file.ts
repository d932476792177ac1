// Puts the key file of a store where it will be used: readable only by its owner, synced to disk, and never replacing a
// different one.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { ConfigInvalid } from "../../errors.ts";
import { reasonOf } from "../../reason.ts";
import { createFile } from "../files/synced.ts";

/** Copies the key at `from` to `to`, unless it is there already; the returned function removes it again. Throws
 *  `ConfigInvalid` when a different key is there, or when it cannot be written. */
export function copyKeyFile(from: string, to: string): () => void {
  const key = readFileSync(from);
  if (existsSync(to)) {
    if (readFileSync(to).toString().trim() === key.toString().trim()) return () => {};
    throw new ConfigInvalid(`${to} holds a different key, which would be lost: move it away if no store needs it`);
  }
  try {
    createFile(to, key);
  } catch (cause) {
    throw new ConfigInvalid(`cannot write ${to}: ${reasonOf(cause)}`, { cause });
  }
  return () => rmSync(to, { force: true });
}
