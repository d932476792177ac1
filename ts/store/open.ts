// Opens the store: today the embedded one in the data directory; PostgreSQL gets its own dialect beside it.
import { mkdirSync } from "node:fs";
import { Kysely } from "kysely";
import { type StoreFailed, StoreUnavailable } from "../errors.ts";
import { libsqlDialect, startLibsqlThread } from "./libsql.ts";
import { migrate } from "./migrations.ts";
import type { Schema } from "./schema.ts";

/** The open store. One process at a time has a data directory. */
export interface Store {
  readonly db: Kysely<Schema>;
  /** Finishes what was sent, checkpoints and gives the data directory back. */
  close(): Promise<void>;
  /** Resolves if the store dies while it is open; nothing works after that. */
  readonly failed: Promise<StoreFailed>;
}

/** Opens the store in `dataDir` (created 0700) and brings its tables up to date. Everything written is on disk when
 *  its promise resolves. Rejects with `StoreUnavailable`. `databaseUrl`: null for the embedded store. */
export async function openStore(options: {
  readonly dataDir: string;
  readonly databaseUrl: string | null;
}): Promise<Store> {
  if (options.databaseUrl !== null) {
    throw new StoreUnavailable("database_url: PostgreSQL comes later; leave it out to use the embedded store");
  }
  try {
    mkdirSync(options.dataDir, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailable(`cannot create the data directory ${options.dataDir}: ${reason}`, { cause });
  }
  const thread = await startLibsqlThread(options.dataDir);
  const db = new Kysely<Schema>({ dialect: libsqlDialect(thread) });
  const close = async () => {
    await db.destroy();
    await thread.close(); // Kysely forgets drivers it never used
  };
  try {
    await migrate(db as Kysely<unknown>);
  } catch (cause) {
    await close();
    if (cause instanceof StoreUnavailable) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StoreUnavailable(`cannot update the tables in ${options.dataDir}: ${reason}`, { cause });
  }
  return { db, close, failed: thread.failed };
}
