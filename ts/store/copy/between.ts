// Opens source and target of a copy, creates the folder of a new embedded store, and removes everything a failed copy
// has created.
import { existsSync, rmdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { StoreUnavailable } from "../../errors.ts";
import { makeFolder } from "../open.ts";
import { isStorePresent } from "../present.ts";
import { type CopiedTable, copyStore } from "./copy.ts";
import { nameOf, type OpenedStore, openAlone, type StoreLocation } from "./location.ts";

/** Files that the embedded store creates in its folder. */
const FILES = ["headgate.db", "headgate.db-wal", "headgate.db-shm", "headgate.lock", "headgate-successor.lock"];

/** Copies the store at `from` to `to`. `check` is called with the source before anything is written, and `keep` when
 *  all rows are there, before the copy may be used; whatever they throw aborts the copy. Rejects as `copyStore`
 *  does. */
export async function copyBetween(
  from: StoreLocation,
  to: StoreLocation,
  options: {
    readonly signal: AbortSignal;
    check(source: OpenedStore): Promise<void>;
    keep(): void;
  },
): Promise<readonly CopiedTable[]> {
  const wasThere = await isStorePresent({
    dataDir: from.kind === "embedded" ? from.dataDir : "",
    databaseUrl: from.kind === "postgres" ? from.databaseUrl : null,
  });
  if (!wasThere) throw new StoreUnavailable(`there is no store in ${nameOf(from)}`);
  const source = await openAlone(from);
  try {
    await options.check(source);
    return to.kind === "embedded"
      ? await withNewFile(to.dataDir, () => copyInto(source, to, options))
      : await copyInto(source, to, options);
  } finally {
    await source.close();
  }
}

async function copyInto(
  source: OpenedStore,
  to: StoreLocation,
  options: { readonly signal: AbortSignal; keep(): void },
): Promise<readonly CopiedTable[]> {
  const target = await openAlone(to);
  try {
    return await copyStore(source, target, options);
  } finally {
    await target.close();
  }
}

/** Removes the files and the folder that `act` created, when it fails. */
async function withNewFile<T>(dataDir: string, act: () => Promise<T>): Promise<T> {
  const path = resolve(dataDir);
  const folderWasThere = existsSync(path);
  const there = FILES.filter((name) => existsSync(join(path, name)));
  try {
    makeFolder(path);
  } catch (cause) {
    throw new StoreUnavailable(`cannot create the data directory ${dataDir}`, { cause });
  }
  try {
    return await act();
  } catch (error) {
    if (!there.includes("headgate.db")) {
      for (const name of FILES) if (!there.includes(name)) rmSync(join(path, name), { force: true });
      if (!folderWasThere) rmdirSync(path);
    }
    throw error;
  }
}
