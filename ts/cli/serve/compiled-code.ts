// V8's compile cache of the gateway, kept in the data directory from one start of the service to the next. Node
// supports that from 22.1 on. Commands import too little to gain from it.
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, type Stats, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { join } from "node:path";

const FOLDER = "compiled";
/** One version of the gateway takes 2 MB under one version of Node. Beyond this the whole cache is deleted. */
const LIMIT_BYTES = 16 << 20;
const WRITABLE_FOR_OTHERS = 0o022;

/** Enables the cache for all further imports; newly compiled code is written to it when the process ends. Does nothing
 *  where that is not possible. */
export function keepCompiledCode(dataDir: string): void {
  const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown };
  // Not tested with Bun's.
  if (enableCompileCache === undefined || process.versions["bun"] !== undefined) return;
  const folder = compiledCodeFolder(dataDir);
  if (folder !== null) enableCompileCache(folder);
}

/** The folder of the cache. Anyone who can write there controls the code that the service runs: so it is null unless
 *  data directory and folder belong to the user of this process and no one else may write to them. Also null when there
 *  is no data directory yet, or it is read-only. */
export function compiledCodeFolder(dataDir: string): string | null {
  const folder = join(dataDir, FOLDER);
  try {
    if (!isOwn(statSync(dataDir))) return null;
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    // lstat, so that links are not followed.
    if (!isOwn(lstatSync(folder))) return null;
    if (bytesIn(folder) > LIMIT_BYTES) empty(folder);
    return folder;
  } catch {
    return null;
  }
}

function isOwn(found: Stats): boolean {
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & WRITABLE_FOR_OTHERS) === 0;
}

function bytesIn(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.reduce((sum, name) => sum + lstatSync(join(folder, name)).size, 0);
}

function empty(folder: string): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
}
