// Which store a test works on: the embedded one, or PostgreSQL in the project that runs the same files once more
// (vitest.config.ts).
import { afterAll } from "vitest";
import { openStore, type Store } from "../../ts/store/open.ts";
import { type PostgresServer, startPostgres } from "./postgres.ts";

export const ON_POSTGRES = process.env.TEST_STORE === "postgres";

let server: Promise<PostgresServer> | null = null;
/** A database with all tables and no row: copies of it are made far faster than tables are. */
let template: Promise<string> | null = null;
/** Data directory → its database. */
const databases = new Map<string, Promise<string>>();

/** Where the store of a data directory is: the same answer for the same directory. */
export async function databaseUrlOf(dataDir: string): Promise<string | null> {
  if (!ON_POSTGRES) return null;
  server ??= startPostgres();
  const running = await server;
  const known = databases.get(dataDir) ?? running.newDatabase();
  databases.set(dataDir, known);
  return await known;
}

export async function openTestStore(dataDir: string): Promise<Store> {
  if (ON_POSTGRES && !databases.has(dataDir)) databases.set(dataDir, databaseWithTables(dataDir));
  return await openStore({ dataDir, databaseUrl: await databaseUrlOf(dataDir) });
}

async function databaseWithTables(dataDir: string): Promise<string> {
  server ??= startPostgres();
  const running = await server;
  template ??= (async () => {
    const databaseUrl = await running.newDatabase();
    await (await openStore({ dataDir, databaseUrl })).close();
    return databaseUrl;
  })();
  return await running.newDatabase(await template);
}

afterAll(async () => (await server)?.close());
