// One embedded store with all tables and no rows, created before the first test file: tests start with copies of it,
// which is much faster than creating tables. Migrations have tests of their own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../ts/store/open.ts";

/** Called by vitest; the function that it returns is called after the last file. */
export async function setup(): Promise<() => void> {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-template-"));
  await (await openStore({ dataDir, databaseUrl: null })).close();
  process.env.TEST_STORE_TEMPLATE = dataDir;
  return () => rmSync(dataDir, { recursive: true });
}
