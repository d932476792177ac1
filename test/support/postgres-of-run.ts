// One PostgreSQL server for all suites of a run: vitest starts it before the first file of the project that needs it,
// and test processes get its address from their environment. Each creates its own databases on it (stores.ts).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../ts/store/open.ts";
import { startPostgres } from "./postgres.ts";

/** Called by vitest; the function that it returns is called after the last file. */
export async function setup(): Promise<() => Promise<void>> {
  const server = await startPostgres({ max_connections: "200" });
  // A database with all tables and no rows: copying it is much faster than creating tables.
  const template = await server.newDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-template-"));
  await (await openStore({ dataDir, databaseUrl: template })).close();
  rmSync(dataDir, { recursive: true });
  process.env.TEST_POSTGRES_URL = server.url;
  process.env.TEST_POSTGRES_TEMPLATE = template;
  return () => server.close();
}
