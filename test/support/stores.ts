// The store that a test uses: the embedded one, or PostgreSQL in the project that runs the same files once more
// (vitest.config.ts). The server belongs to the run (postgres-of-run.ts), the databases to the file that creates them.
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { openStore, type Store } from "../../ts/store/open.ts";
import { databasesAt, type PostgresServer } from "./postgres.ts";

export const ON_POSTGRES = process.env.TEST_STORE === "postgres";

/** Reused, because starting one costs 70 ms of CPU time, about as much as everything else in the test of a route. */
const idleThreads: Worker[] = [];
/** Data directory → its database. */
const databases = new Map<string, Promise<string>>();
let newDatabase: ((from?: string) => Promise<string>) | null = null;

/** URL of the database for a data directory: the same for the same directory. */
export async function databaseUrlOf(dataDir: string): Promise<string | null> {
  return ON_POSTGRES ? await databaseOf(dataDir) : null;
}

/** Puts an embedded store with all tables and no rows into a directory without one. */
export function beginStore(dataDir: string): void {
  const template = process.env.TEST_STORE_TEMPLATE;
  if (template !== undefined && !existsSync(join(dataDir, "headgate.db"))) {
    cpSync(template, dataDir, { recursive: true });
  }
}

/** A new directory or database starts with all tables and no rows (store-of-run.ts, postgres-of-run.ts). */
export async function openTestStore(dataDir: string): Promise<Store> {
  if (ON_POSTGRES) await databaseOf(dataDir, process.env.TEST_POSTGRES_TEMPLATE);
  else beginStore(dataDir);
  return await openStore({ dataDir, databaseUrl: await databaseUrlOf(dataDir), idleThreads });
}

/** Makes databases with all tables and no rows: copies of one, which is much faster than creating tables. */
export async function databasesWithTables(server: PostgresServer): Promise<() => Promise<string>> {
  const template = await server.newDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-template-"));
  await (await openStore({ dataDir, databaseUrl: template })).close();
  rmSync(dataDir, { recursive: true });
  return () => server.newDatabase(template);
}

function databaseOf(dataDir: string, from?: string): Promise<string> {
  // Files run in processes of their own, whose ids keep their databases apart.
  newDatabase ??= databasesAt(process.env.TEST_POSTGRES_URL ?? "", `test_${process.pid}_`);
  const known = databases.get(dataDir) ?? newDatabase(from);
  databases.set(dataDir, known);
  return known;
}
