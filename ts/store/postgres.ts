// The Kysely dialect of PostgreSQL: a pool of connections (postgres/connecting.ts), rows in the same form as the
// embedded store's. Not here: the tables (schema.ts, migrations.ts), and retries of transactions (retrying.ts).
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
import { Pool, type PoolClient } from "pg";
import { StoreFailed } from "../errors.ts";
import { bindable } from "./parameters.ts";
import { CONNECT_LIMIT_MS, failureOf, onCurrentServer, ServerClient } from "./postgres/connecting.ts";
import { type Servers, serversOf } from "./postgres/servers.ts";

/** Most connections of a process; further requests wait. */
const CONNECTIONS_LIMIT = 10;
/** An idle connection is closed after this, ms. */
const IDLE_LIMIT_MS = 30_000;

export interface ServerPool extends Pool {
  readonly servers: Servers;
}

/** Opens no connection yet; the first statement does. */
export function openPool(databaseUrl: string): ServerPool {
  const servers = serversOf(databaseUrl);
  const pool = new Pool({
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    max: CONNECTIONS_LIMIT,
    idleTimeoutMillis: IDLE_LIMIT_MS,
    Client: class extends ServerClient {
      constructor() {
        super(servers);
      }
    },
  });
  // An idle connection that breaks is replaced by the pool; the next statement reports when the server is gone.
  pool.on("error", () => {});
  // Acknowledged commits must be on disk, whatever the server's default; stricter levels are left unchanged.
  pool.on("connect", (client) => {
    client
      .query("select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'")
      .catch(() => {}); // the statement that needed the connection fails as well
  });
  return Object.assign(pool, { servers });
}

/** The dialect over a pool; destroying the Kysely instance closes the pool. */
export function postgresDialect(pool: ServerPool): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PooledDriver(pool),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

class PooledDriver implements Driver {
  readonly #pool: ServerPool;

  constructor(pool: ServerPool) {
    this.#pool = pool;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<PooledConnection> {
    try {
      return new PooledConnection(await onCurrentServer(this.#pool.servers, () => this.#connected()));
    } catch (cause) {
      throw failureOf(cause);
    }
  }

  /** A connection of the current epoch (postgres/servers.ts); older ones are closed. */
  async #connected(): Promise<PoolClient & ServerClient> {
    for (;;) {
      const client = (await this.#pool.connect()) as PoolClient & ServerClient;
      if (client.isCurrent) return client;
      client.release(true);
    }
  }

  async beginTransaction(connection: PooledConnection, { isolationLevel }: TransactionSettings): Promise<void> {
    await connection.run(isolationLevel === undefined ? "begin" : `begin isolation level ${isolationLevel}`, []);
  }

  async commitTransaction(connection: PooledConnection): Promise<void> {
    // COMMIT in a transaction that a failed statement has aborted reports no error, although nothing was kept.
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
  readonly #client: PoolClient & ServerClient;
  /** Must not be used again. */
  #broken = false;

  constructor(client: PoolClient & ServerClient) {
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
      if (this.#client.noteFailure(cause)) this.#broken = true;
      throw failureOf(cause);
    }
  }

  release(): void {
    this.#client.release(this.#broken);
  }
}
