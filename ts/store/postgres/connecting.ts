// Connections to a PostgreSQL database, always to the server that accepts writes, with a limit on every wait.
import {
  Client,
  type ClientConfig,
  DatabaseError,
  type QueryConfig,
  type QueryResult,
  type QueryResultRow,
  types,
} from "pg";
import { StoreFailed } from "../../errors.ts";
import { inTime } from "../../in-time.ts";
import { reasonOf } from "../../reason.ts";
import { type DatabaseServer, parseDatabaseUrl } from "./database-url.ts";
import { answersOf, type ServerAnswer, type Servers, type Standing, serversOf, standingOf } from "./servers.ts";
import { type Backend, SILENT_AFTER_MS, watchSilence } from "./silence.ts";

/** How long any caller waits for a connection, pooled or new, ms. */
export const CONNECT_LIMIT_MS = 5_000;
/** How long one of several servers may take to connect and report its state, ms. A caller waits for that three times at
 *  most: for the last known server, for all at once, and for the one that was found. */
const ANSWER_OF_SEVERAL_LIMIT_MS = 1_600;
/** How long a connection that has answered is used without asking whether it still does, ms. */
const HEARD_FOR_MS = 1_000;
/** Limits for one statement and for waiting for a lock, enforced by the server, ms. */
const STATEMENT_LIMIT_MS = 10_000;
const LOCK_LIMIT_MS = 5_000;
/** How long a response is awaited: a server that is gone sends none, ms. */
const ANSWER_LIMIT_MS = 15_000;
/** The server aborts a transaction that is idle this long, since its owner is probably gone, ms. Its rows are then free
 *  while others still wait for their locks, so that a node paused in the middle of one does not block anyone from its
 *  publishes. */
const IDLE_TRANSACTION_LIMIT_MS = 3_000;
/** SQLSTATEs of a server that must no longer be used: read_only_sql_transaction, admin_shutdown, crash_shutdown,
 *  cannot_connect_now. */
const LEAVING = new Set(["25006", "57P01", "57P02", "57P03"]);

const BOOLEAN_OID = 16;
const BIGINT_OID = 20;
const NUMERIC_OID = 1700;

/** Converts values to the same form as libsql: whole numbers and sums to numbers (all of ours stay below 2^53),
 *  booleans to 1 and 0. */
function parserOf(oid: number): (text: string) => unknown {
  if (oid === BIGINT_OID || oid === NUMERIC_OID) return Number;
  if (oid === BOOLEAN_OID) return (text) => (text === "t" ? 1 : 0);
  return types.getTypeParser(oid, "text") as (text: string) => unknown;
}

/** Options of every connection. */
const OPTIONS: ClientConfig = {
  application_name: "headgate",
  statement_timeout: STATEMENT_LIMIT_MS,
  lock_timeout: LOCK_LIMIT_MS,
  query_timeout: ANSWER_LIMIT_MS,
  idle_in_transaction_session_timeout: IDLE_TRANSACTION_LIMIT_MS,
  keepAlive: true,
  types: { getTypeParser: parserOf },
};

/** Whether a row of pg_stat_activity is of a certain process: numbers of processes are used again. */
const IS_BACKEND = "pid = $1 and extract(epoch from backend_start)::text = $2";

/** The driver's callback. */
type Connected = ((error: Error) => void) | ((error: null, client: Client) => void);

/** A connection to the server that is current when it is created. `connect` includes the check of the server. */
export class ServerClient extends Client {
  readonly #servers: Servers;
  readonly #server: DatabaseServer;
  readonly #epoch: number;
  /** The process that serves it; null before it is connected. */
  #backend: Backend | null = null;
  /** When its server last answered, on `performance.now`. */
  #heardAt = Number.NEGATIVE_INFINITY;

  constructor(servers: Servers, options: ClientConfig = {}) {
    const server = servers.current;
    const connectionTimeoutMillis = servers.hasSeveral ? ANSWER_OF_SEVERAL_LIMIT_MS : CONNECT_LIMIT_MS;
    super({ ...OPTIONS, ...options, connectionString: server.url, connectionTimeoutMillis });
    this.#servers = servers;
    this.#server = server;
    this.#epoch = servers.epoch;
    // A pending statement fails with the error and the pool replaces an idle connection; this listener covers all other
    // cases.
    this.on("error", (error) => void this.noteFailure(error));
  }

  /** False when an event since its creation has put its server in doubt. */
  get isCurrent(): boolean {
    return this.#epoch === this.#servers.epoch;
  }

  /** Runs a statement. Rejects when the connection turns out to be lost, long before the limit of an answer. */
  async ask<Row extends QueryResultRow>(statement: QueryConfig): Promise<QueryResult<Row>> {
    return await this.#watched(() => this.query<Row>(statement));
  }

  /** Sends all of `statements` at once: for a connection with `pipeline`, which runs them in order. Rejects as `ask`
   *  does, with the first failure, when all of them have been answered. */
  async askTogether<Row extends QueryResultRow>(statements: readonly QueryConfig[]): Promise<QueryResult<Row>[]> {
    return await this.#watched(async () => {
      const { stream } = this.connection;
      stream.cork();
      const asked = statements.map((statement) => this.query<Row>(statement));
      stream.uncork();
      const answers = await Promise.allSettled(asked);
      const failures = answers.filter((answer) => answer.status === "rejected").map(({ reason }) => reason as unknown);
      // The first may be of a statement, and a later one of the connection.
      for (const later of failures.slice(1)) this.noteFailure(later);
      if (failures.length > 0) throw failures[0];
      return answers.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    });
  }

  /** Ends the connection when it does not answer for too long. */
  async #watched<T>(act: () => Promise<T>): Promise<T> {
    const silent = {
      servers: this.#servers,
      server: this.#server,
      backend: this.#backend,
      activityOf,
      isReplaced: () => this.#servers.isReplaced(this.#server, probe),
    };
    const heard = watchSilence(silent, (reason) => this.#destroy(reason));
    try {
      const answer = await act();
      this.#heardAt = performance.now();
      return answer;
    } finally {
      heard();
    }
  }

  /** Whether its server answers: asked unless it has answered a moment ago. */
  async answers(): Promise<boolean> {
    if (performance.now() - this.#heardAt < HEARD_FOR_MS) return true;
    try {
      await this.ask({ text: "select 1" });
      return true;
    } catch (cause) {
      this.noteFailure(cause);
      return false;
    }
  }

  /** Ends the process that served `former`, a lost connection: it may not have noticed, and still hold its locks. */
  async endBackendOf(former: ServerClient): Promise<void> {
    if (former.#backend === null) return;
    const { pid, start } = former.#backend;
    await this.ask({
      text: `select pg_terminate_backend(pid) from pg_stat_activity where ${IS_BACKEND}`,
      values: [pid, start],
    });
  }

  /** Closes it at once: the pending statement fails. */
  #destroy(reason: string): void {
    this.connection.stream.destroy(new StoreFailed(reason));
  }

  /** Handles a failure. Returns whether the connection must no longer be used. */
  noteFailure(cause: unknown): boolean {
    // For an error not reported by the server the state of the connection is unknown.
    const isLost = !(cause instanceof DatabaseError) || LEAVING.has(cause.code ?? "");
    if (isLost) this.#servers.doubt(this.#epoch);
    return isLost;
  }

  override connect(): Promise<this>;
  override connect(callback: Connected): void;
  override connect(callback?: Connected): Promise<this> | undefined {
    const connecting = this.#connect();
    const done = callback as ((error: Error | null, client?: Client) => void) | undefined;
    if (done === undefined) return connecting;
    connecting.then((client) => done(null, client), done);
    return undefined;
  }

  async #connect(): Promise<this> {
    const { mustBeWritable, hasSeveral } = this.#servers;
    const connected = async (): Promise<this> => {
      await super.connect();
      if (mustBeWritable || hasSeveral) this.#servers.check(await standingOf(this));
      // Not from the handshake: behind a pooler that has another number.
      const { rows } = await this.query<Backend>(
        "select pid, extract(epoch from backend_start)::text as start from pg_stat_activity where pid = pg_backend_pid()",
      );
      this.#backend = rows[0] ?? null;
      this.#heardAt = performance.now();
      return this;
    };
    try {
      return await within(hasSeveral ? ANSWER_OF_SEVERAL_LIMIT_MS : CONNECT_LIMIT_MS, connected());
    } catch (cause) {
      this.noteFailure(cause);
      // Not awaited: a server that is gone does not close the connection.
      this.end().catch(() => {});
      throw hasSeveral ? new StoreFailed(`${this.#server.address}: ${reasonsOf(cause)}`, { cause }) : cause;
    }
  }
}

/** Runs `connect`, and once more with another server when the first is in doubt afterwards. */
export async function onCurrentServer<T>(servers: Servers, connect: () => Promise<T>): Promise<T> {
  await servers.find(probe);
  const { epoch } = servers;
  try {
    return await connect();
  } catch (error) {
    if (!servers.hasSeveral || servers.epoch === epoch) throw error;
  }
  await servers.find(probe);
  return await connect();
}

/** A connection outside the pool. `options`: override those of other connections. */
export async function connectedClient(databaseUrl: string, options: ClientConfig = {}): Promise<ServerClient> {
  const servers = serversOf(databaseUrl);
  return await onCurrentServer(servers, async () => {
    const client = new ServerClient(servers, options);
    await client.connect();
    return client;
  });
}

/** The state that each server of a database reports, for people; `fault` when it does not answer. Throws as
 *  `parseDatabaseUrl` does. */
export async function standingsOf(databaseUrl: string): Promise<readonly ServerAnswer[]> {
  return await answersOf(parseDatabaseUrl(databaseUrl).servers, probe);
}

async function probe(server: DatabaseServer): Promise<Standing> {
  return await onOwnConnection(server, ANSWER_OF_SEVERAL_LIMIT_MS, standingOf);
}

async function activityOf(server: DatabaseServer, { pid, start }: Backend): Promise<"busy" | "idle"> {
  return await onOwnConnection(server, 2 * SILENT_AFTER_MS, async (client) => {
    const text = `select 1 from pg_stat_activity where ${IS_BACKEND} and (state is null or state not like 'idle%')`;
    const { rowCount } = await client.query(text, [pid, start]);
    return rowCount === 0 ? "idle" : "busy";
  });
}

async function onOwnConnection<T>(
  server: DatabaseServer,
  limitMs: number,
  ask: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ ...OPTIONS, connectionTimeoutMillis: limitMs, connectionString: server.url });
  client.on("error", () => {}); // of a connection that is lost later
  const asked = async (): Promise<T> => {
    await client.connect();
    return await ask(client);
  };
  try {
    return await within(limitMs, asked());
  } catch (cause) {
    throw new StoreFailed(reasonsOf(cause), { cause });
  } finally {
    // Not awaited: a server that is gone does not close the connection.
    client.end().catch(() => {});
  }
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const inTheEnd = await inTime(limitMs, work, null);
  if (inTheEnd === null) throw new StoreFailed(`no answer within ${limitMs} ms`);
  return inTheEnd;
}

/** The server's message without values: the detail, which may contain some, stays in the cause, which is never
 *  printed. */
export function failureOf(cause: unknown): StoreFailed {
  return cause instanceof StoreFailed ? cause : new StoreFailed(reasonsOf(cause), { cause });
}

/** When several addresses of one host all refuse, the error has no message of its own. */
function reasonsOf(cause: unknown): string {
  const each = cause instanceof AggregateError ? cause.errors : [cause];
  return each.map((error: unknown) => reasonOf(error)).join("; ");
}
