// A store opened for copying: no service uses it meanwhile, and its tables are not migrated.
import { Kysely, sql } from "kysely";
import { StoreUnavailable } from "../../errors.ts";
import { LibsqlKysely, startLibsqlThread } from "../libsql.ts";
import { MIGRATIONS, requireOwnTables, UNFINISHED_COPY } from "../migrations.ts";
import { connectTo, nameOfDatabase, requireVersion } from "../open-postgres.ts";
import type { Schema } from "../schema.ts";

/** Where a store is: a data directory, or the URL of a PostgreSQL database. */
export type StoreLocation =
  | { readonly kind: "embedded"; readonly dataDir: string }
  | { readonly kind: "postgres"; readonly databaseUrl: string };

export interface OpenedStore {
  readonly kind: StoreLocation["kind"];
  /** For people: never a password. */
  readonly name: string;
  readonly db: Kysely<Schema>;
  close(): Promise<void>;
}

/** Opens a place for exclusive use. Rejects with `StoreUnavailable` when a service runs on it. The embedded store's
 *  file is created when it is missing. */
export async function openAlone(location: StoreLocation): Promise<OpenedStore> {
  return location.kind === "embedded" ? await openFile(location.dataDir) : await openDatabase(location.databaseUrl);
}

/** The name of a place, never with a password. Throws `StoreUnavailable` for a URL that cannot be used. */
export function nameOf(location: StoreLocation): string {
  return location.kind === "embedded" ? location.dataDir : nameOfDatabase(location.databaseUrl);
}

async function openFile(dataDir: string): Promise<OpenedStore> {
  const thread = await startLibsqlThread(dataDir, "service");
  const db = new LibsqlKysely<Schema>(thread);
  const close = async () => {
    await db.destroy();
    await thread.close(); // Kysely does not close drivers it never used
  };
  return { kind: "embedded", name: dataDir, db, close };
}

async function openDatabase(databaseUrl: string): Promise<OpenedStore> {
  const { name, lock, dialect, disconnect } = await connectTo(databaseUrl, null);
  if (!lock.held) throw new StoreUnavailable(`${name} is in use by another headgate process: stop it first`);
  const db = new Kysely<Schema>({ dialect });
  const close = async () => {
    await db.destroy();
    await disconnect();
  };
  try {
    await requireVersion(db);
  } catch (error) {
    await close();
    throw error;
  }
  return { kind: "postgres", name, db, close };
}

/** Throws `StoreUnavailable` unless the store is complete and its tables are those of this version of headgate. */
export async function requireThisSchema({ db, name }: OpenedStore): Promise<void> {
  if (!(await requireOwnTables(db as Kysely<unknown>, name)))
    throw new StoreUnavailable(`${name} holds no complete store`);
  const { rows } = await sql<{ name: string }>`select name from migration order by position`.execute(db);
  const names = rows.map((row) => row.name);
  if (names.includes(UNFINISHED_COPY))
    throw new StoreUnavailable(`${name} holds an incomplete copy of an interrupted run`);
  if (names.some((each, at) => MIGRATIONS[at]?.name !== each)) {
    throw new StoreUnavailable(
      `${name} was created by a newer headgate (it has the migration ${names.at(-1)}): update headgate`,
    );
  }
  if (names.length < MIGRATIONS.length) {
    throw new StoreUnavailable(
      `${name} was last used by an older headgate (it has no ${MIGRATIONS[names.length]?.name}): start the service on it once to bring its tables up to date`,
    );
  }
}
