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
import { type ClientConfig, Pool, type PoolClient, type QueryResult as ServerAnswer } from "pg";
import { StoreFailed } from "../errors.ts";
import { CONNECT_LIMIT_MS, failureOf, onCurrentServer, ServerClient } from "./postgres/connecting.ts";
import { type Servers, serversOf } from "./postgres/servers.ts";
import { type Done, doneOf, type Together } from "./statements/together.ts";
import { bindable } from "./tables/parameters.ts";

/** Most connections of a process; further requests wait. */
const CONNECTIONS_LIMIT = 10;
/** An idle connection is closed after this, ms. */
const IDLE_LIMIT_MS = 30_000;

export interface ServerPool extends Pool {
  readonly servers: Servers;
}

/** Closes its connections. Kysely does so only for a driver that it has used. */
export async function endPool(pool: Pool): Promise<void> {
  if (!pool.ended) await pool.end();
}

/** Opens no connection yet; the first statement does. `options`: of its connections. */
export function openPool(
  databaseUrl: string,
  { most = CONNECTIONS_LIMIT, ...options }: ClientConfig & { readonly most?: number } = {},
): ServerPool {
  const servers = serversOf(databaseUrl);
  const pool = new Pool({
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    max: most,
    idleTimeoutMillis: IDLE_LIMIT_MS,
    Client: class extends ServerClient {
      constructor() {
        // A statement need not wait for the answer to the one before it.
        super(servers, { ...options, pipeline: true });
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
  return dialectOf(() => new PooledDriver(pool));
}

/** The dialect over one connection, for one statement or transaction at a time. Destroying the Kysely instance does not
 *  close it. */
export function connectionDialect(client: ServerClient): Dialect {
  return dialectOf(() => new ConnectionDriver(client));
}

function dialectOf(createDriver: () => Driver): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver,
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  };
}

abstract class ServerDriver implements Driver {
  async init(): Promise<void> {}

  abstract acquireConnection(): Promise<ServerConnection>;

  async beginTransaction(connection: ServerConnection, { isolationLevel }: TransactionSettings): Promise<void> {
    await connection.run(beginOf(isolationLevel), []);
  }

  async commitTransaction(connection: ServerConnection): Promise<void> {
    requireKept(await connection.run("commit", []));
  }

  async rollbackTransaction(connection: ServerConnection): Promise<void> {
    await connection.run("rollback", []);
  }

  async releaseConnection(connection: ServerConnection): Promise<void> {
    connection.release();
  }

  abstract destroy(): Promise<void>;
}

class PooledDriver extends ServerDriver {
  readonly #pool: ServerPool;

  constructor(pool: ServerPool) {
    super();
    this.#pool = pool;
  }

  async acquireConnection(): Promise<ServerConnection> {
    try {
      const client = await onCurrentServer(this.#pool.servers, () => this.#connected());
      return new ServerConnection(client, (isBroken) => client.release(isBroken));
    } catch (cause) {
      throw failureOf(cause);
    }
  }

  /** A connection of the current epoch (postgres/servers.ts) that answers; others are closed. */
  async #connected(): Promise<PoolClient & ServerClient> {
    for (;;) {
      const client = (await this.#pool.connect()) as PoolClient & ServerClient;
      if (client.isCurrent && (await client.answers())) return client;
      client.release(true);
    }
  }

  async destroy(): Promise<void> {
    // The store's owner has ended it already if the first statement came later.
    await endPool(this.#pool);
  }
}

class ConnectionDriver extends ServerDriver {
  readonly #client: ServerClient;

  constructor(client: ServerClient) {
    super();
    this.#client = client;
  }

  async acquireConnection(): Promise<ServerConnection> {
    return new ServerConnection(this.#client, () => {});
  }

  async destroy(): Promise<void> {}
}

class ServerConnection implements DatabaseConnection, Together {
  readonly #client: ServerClient;
  readonly #release: (isBroken: boolean) => void;
  /** Must not be used again. */
  #broken = false;

  constructor(client: ServerClient, release: (isBroken: boolean) => void) {
    this.#client = client;
    this.#release = release;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return resultOf<R>(await this.run(query.sql, query.parameters.map(bindable)));
  }

  /** A serializable transaction, all of which is sent before the first answer comes. After a statement that fails the
   *  server refuses the others, and keeps nothing. */
  async together(queries: readonly CompiledQuery[]): Promise<readonly Done[]> {
    const statements = queries.map(({ sql, parameters }) => ({ text: sql, values: parameters.map(bindable) }));
    const whole = [{ text: beginOf("serializable") }, ...statements, { text: "commit" }];
    const answers = await this.#noting(() => this.#client.askTogether<object>(whole));
    requireKept(answers.at(-1));
    return answers.slice(1, -1).map((answer) => doneOf(resultOf(answer)));
  }

  // biome-ignore lint/correctness/useYield: the interface wants a generator, the store has nothing worth streaming
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new StoreFailed("the store does not stream");
  }

  async run(text: string, values: readonly unknown[]) {
    return await this.#noting(() => this.#client.ask<object>({ text, values: [...values] }));
  }

  async #noting<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act();
    } catch (cause) {
      if (this.#client.noteFailure(cause)) this.#broken = true;
      throw failureOf(cause);
    }
  }

  release(): void {
    this.#release(this.#broken);
  }
}

function beginOf(isolationLevel: TransactionSettings["isolationLevel"]): string {
  return isolationLevel === undefined ? "begin" : `begin isolation level ${isolationLevel}`;
}

/** COMMIT in a transaction that a failed statement has aborted reports no error, although nothing was kept. */
function requireKept(answer: Pick<ServerAnswer, "command"> | undefined): void {
  if (answer?.command !== "COMMIT")
    throw new StoreFailed("a statement of the transaction had failed: nothing was kept");
}

function resultOf<R>({ rows, rowCount, command }: ServerAnswer<object>): QueryResult<R> {
  return { rows: rows as R[], numAffectedRows: BigInt(command === "SELECT" ? 0 : (rowCount ?? 0)) };
}
