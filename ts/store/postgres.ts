// The Kysely dialect of PostgreSQL: a pool of connections, every wait bounded, rows as the embedded store gives them.
// Not here: the tables (schema.ts, migrations.ts), transactions that are tried again (retrying.ts).
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from "kysely";
import { DatabaseError, Pool, type PoolClient, type PoolConfig, types } from "pg";
import { StoreFailed } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { bindable } from "./parameters.ts";

/** How many connections a process holds at most; what needs one more waits. */
const CONNECTIONS_LIMIT = 10;
/** How long anything waits for a connection, free or new, ms. */
const CONNECT_LIMIT_MS = 5_000;
/** How long the server works on one statement, and waits for a lock, ms. */
const STATEMENT_LIMIT_MS = 10_000;
const LOCK_LIMIT_MS = 5_000;
/** How long we wait for any answer: a server that is gone sends none, ms. */
const ANSWER_LIMIT_MS = 15_000;
/** A transaction that says nothing this long has lost its owner; the server ends it, ms. */
const IDLE_TRANSACTION_LIMIT_MS = 30_000;
/** An idle connection is closed after this, ms. */
const IDLE_LIMIT_MS = 30_000;

const BOOLEAN_OID = 16;
const BIGINT_OID = 20;
const NUMERIC_OID = 1700;

/** Values as libsql gives them: whole numbers and sums as numbers (all of ours stay below 2^53), truth as 1 and 0. */
function parserOf(oid: number): (text: string) => unknown {
  if (oid === BIGINT_OID || oid === NUMERIC_OID) return Number;
  if (oid === BOOLEAN_OID) return (text) => (text === "t" ? 1 : 0);
  return types.getTypeParser(oid, "text") as (text: string) => unknown;
}

/** What every connection of ours is made with; TLS is as the URL says it. */
export function connectionOptions(databaseUrl: string): PoolConfig {
  return {
    connectionString: databaseUrl,
    application_name: "headgate",
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    statement_timeout: STATEMENT_LIMIT_MS,
    lock_timeout: LOCK_LIMIT_MS,
    query_timeout: ANSWER_LIMIT_MS,
    idle_in_transaction_session_timeout: IDLE_TRANSACTION_LIMIT_MS,
    keepAlive: true,
    types: { getTypeParser: parserOf },
  };
}

/** Opens no connection yet; the first statement does. */
export function openPool(databaseUrl: string): Pool {
  const pool = new Pool({
    ...connectionOptions(databaseUrl),
    max: CONNECTIONS_LIMIT,
    idleTimeoutMillis: IDLE_LIMIT_MS,
  });
  // An idle connection that breaks is replaced by the pool; the next statement tells when the server is gone.
  pool.on("error", () => {});
  // What is acknowledged must be on disk, whatever the server's default; stricter levels are left alone.
  pool.on("connect", (client) => {
    client
      .query("select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'")
      .catch(() => {}); // the statement that wanted the connection fails too, and says so
  });
  return pool;
}

/** The dialect over a pool; destroying the Kysely instance closes the pool. */
export function postgresDialect(pool: Pool): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PooledDriver(pool),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

class PooledDriver implements Driver {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<PooledConnection> {
    try {
      return new PooledConnection(await this.#pool.connect());
    } catch (cause) {
      throw failureOf(cause);
    }
  }

  async beginTransaction(connection: PooledConnection, { isolationLevel }: TransactionSettings): Promise<void> {
    await connection.run(isolationLevel === undefined ? "begin" : `begin isolation level ${isolationLevel}`, []);
  }

  async commitTransaction(connection: PooledConnection): Promise<void> {
    // A transaction that a failed statement has ended is "committed" without an error: nothing of it was kept.
    const { command } = await connection.run("commit", []);
    if (command !== "COMMIT") throw new StoreFailed("a statement of the transaction had failed: nothing was kept");
  }

  async rollbackTransaction(connection: PooledConnection): Promise<void> {
    await connection.run("rollback", []);
  }

  async releaseConnection(connection: PooledConnection): Promise<void> {
    connection.release();
  }

  async destroy(): Promise<void> {
    await this.#pool.end();
  }
}

class PooledConnection implements DatabaseConnection {
  readonly #client: PoolClient;
  /** What the server did not say itself: then nobody knows what state the connection is in. */
  #broken = false;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const { rows, rowCount, command } = await this.run(query.sql, query.parameters.map(bindable));
    const changes = command === "SELECT" ? 0 : (rowCount ?? 0);
    return { rows: rows as R[], numAffectedRows: BigInt(changes) };
  }

  // biome-ignore lint/correctness/useYield: the interface wants a generator, the store has nothing worth streaming
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new StoreFailed("the store does not stream");
  }

  async run(text: string, values: readonly unknown[]) {
    try {
      return await this.#client.query<object>({ text, values: [...values] });
    } catch (cause) {
      if (!(cause instanceof DatabaseError)) this.#broken = true;
      throw failureOf(cause);
    }
  }

  release(): void {
    this.#client.release(this.#broken);
  }
}

/** The server's reason without values: its detail, which may hold some, stays in the cause, and nothing prints that. */
export function failureOf(cause: unknown): StoreFailed {
  // Several addresses of one host that all refuse come as one error without words.
  const each = cause instanceof AggregateError ? cause.errors : [cause];
  const reasons = each.map((error: unknown) => reasonOf(error));
  return new StoreFailed(reasons.join("; "), { cause });
}
