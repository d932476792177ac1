// Files and folders that survive a power failure.
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Syncs a file, or a folder: files created or renamed in it survive a power failure. */
export function syncPath(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Creates a file that only its owner can read, and syncs it: complete or, whenever this fails, not there at all. The
 *  caller knows that there is none. Throws the system's error. */
export function createFile(path: string, content: string | Buffer): void {
  const partial = `${path}.partial`;
  try {
    const file = openSync(partial, "w", 0o600);
    try {
      writeSync(file, Buffer.from(content));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(partial, path);
    syncPath(dirname(path));
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}
