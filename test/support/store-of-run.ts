// One embedded store with all tables and no row, made before the first test file: tests begin with copies of it, which are
// made far faster than tables are. Migrations have tests of their own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../ts/store/open.ts";

/** Called by vitest; what it returns is called after the last file. */
export async function setup(): Promise<() => void> {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-template-"));
  await (await openStore({ dataDir, databaseUrl: null })).close();
  process.env.TEST_STORE_TEMPLATE = dataDir;
  return () => rmSync(dataDir, { recursive: true });
}
