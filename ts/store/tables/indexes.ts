// Builds an index on a table in use. PostgreSQL builds it concurrently, so that nobody's writes wait; killed half-way,
// that leaves an invalid index behind, which is dropped and built again.
import { type Kysely, PostgresAdapter, sql } from "kysely";
import { StoreFailed } from "../../errors.ts";

export interface Index {
  readonly name: string;
  /** What follows `on`: the table with its columns, and the condition of a partial index. */
  readonly on: string;
}

/** SQLSTATE deadlock_detected: a process of the former version waits for the migration in a way that the build waits
 *  for. The server ends one of the two, as a rule the build. */
const DEADLOCK = "40P01";
const ATTEMPTS_LIMIT = 10;

/** Not in a transaction. Resolves when the index exists and is valid. */
export async function buildIndex(db: Kysely<unknown>, { name, on }: Index): Promise<void> {
  if (!(db.getExecutor().adapter instanceof PostgresAdapter)) {
    await sql`create index if not exists ${sql.ref(name)} on ${sql.raw(on)}`.execute(db);
    return;
  }
  // It waits for transactions of others, however long they are, without anybody waiting for it.
  await db.connection().execute(async (connection) => {
    const { rows } = await sql<{ limit: string }>`select current_setting('lock_timeout') as limit`.execute(connection);
    await sql`set lock_timeout = 0`.execute(connection);
    try {
      await builtConcurrently(connection, { name, on });
    } finally {
      await sql`select set_config('lock_timeout', ${rows[0]?.limit ?? "0"}, false)`.execute(connection);
    }
  });
}

async function builtConcurrently(db: Kysely<unknown>, { name, on }: Index): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if ((await stateOf(db, name)) === "invalid") await sql`drop index concurrently ${sql.ref(name)}`.execute(db);
      await sql`create index concurrently if not exists ${sql.ref(name)} on ${sql.raw(on)}`.execute(db);
      return;
    } catch (error) {
      if (attempt === ATTEMPTS_LIMIT || !isDeadlock(error)) throw error;
      await cancelWaiting(db);
    }
  }
}

/** Ends the statements that wait for an advisory lock of this connection. Their processes could not use the migrated
 *  store, and start again. */
async function cancelWaiting(db: Kysely<unknown>): Promise<void> {
  await sql`
    select pg_cancel_backend(waiting.pid) from pg_locks as waiting join pg_locks as held
      using (locktype, database, classid, objid, objsubid)
    where waiting.locktype = 'advisory' and not waiting.granted and held.granted and held.pid = pg_backend_pid()
  `.execute(db);
}

async function stateOf(db: Kysely<unknown>, name: string): Promise<"valid" | "invalid" | "absent"> {
  const { rows } = await sql<{ valid: number }>`
    select pg_index.indisvalid as valid from pg_index join pg_class on pg_class.oid = pg_index.indexrelid
    where pg_class.relname = ${name} and pg_class.relnamespace = current_schema()::regnamespace
  `.execute(db);
  const [row] = rows;
  if (row === undefined) return "absent";
  return row.valid === 1 ? "valid" : "invalid";
}

function isDeadlock(error: unknown): boolean {
  return error instanceof StoreFailed && (error.cause as { readonly code?: string } | undefined)?.code === DEADLOCK;
}
