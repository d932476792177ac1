// The gateway as V8 has compiled it, kept in the data directory from one start of the service to the next. Node can do that
// from 22.1 on. Commands import too little to gain from it.
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync, type Stats, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { join } from "node:path";

const FOLDER = "compiled";
/** One version of the gateway takes 2 MB under one version of Node. Past this, what all of them left is removed. */
const LIMIT_BYTES = 16 << 20;
const WRITABLE_FOR_OTHERS = 0o022;

/** What is imported from now on is taken from there, and what was compiled is written there when the process ends. Where that
 *  is not possible nothing happens. */
export function keepCompiledCode(dataDir: string): void {
  const { enableCompileCache } = nodeModule as { readonly enableCompileCache?: (folder: string) => unknown };
  // Bun's has never been measured here.
  if (enableCompileCache === undefined || process.versions["bun"] !== undefined) return;
  const folder = compiledCodeFolder(dataDir);
  if (folder !== null) enableCompileCache(folder);
}

/** Whoever writes there decides what the service runs: it is null unless data directory and folder belong to the user of this
 *  process and no other may write to them. Null also when there is no data directory yet, or one that is read-only. */
export function compiledCodeFolder(dataDir: string): string | null {
  const folder = join(dataDir, FOLDER);
  try {
    if (!isOwn(statSync(dataDir))) return null;
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    // lstat: not where a link leads.
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
