// Connections to a PostgreSQL database, each to the server that takes writes, every wait bounded.
import { Client, type ClientConfig, DatabaseError, types } from "pg";
import { StoreFailed } from "../../errors.ts";
import { inTime } from "../../in-time.ts";
import { reasonOf } from "../../reason.ts";
import { type DatabaseServer, parseDatabaseUrl } from "./database-url.ts";
import { answersOf, type ServerAnswer, type Servers, type Standing, serversOf, standingOf } from "./servers.ts";

/** How long anything waits for a connection, free or new, ms. */
export const CONNECT_LIMIT_MS = 5_000;
/** How long one of several servers may take to connect and say what it is, ms. Who wants a connection waits for that
 *  three times at most: for the last known server, for all at the same time, and for the one that was found. */
const ANSWER_OF_SEVERAL_LIMIT_MS = 1_600;
/** How long the server works on one statement, and waits for a lock, ms. */
const STATEMENT_LIMIT_MS = 10_000;
const LOCK_LIMIT_MS = 5_000;
/** How long we wait for any answer: a server that is gone sends none, ms. */
const ANSWER_LIMIT_MS = 15_000;
/** A transaction that says nothing this long has lost its owner: the server ends it, ms. Its rows are free again while
 *  others still wait for their locks, so that a node that is paused in the middle of one keeps nobody from its publishes. */
const IDLE_TRANSACTION_LIMIT_MS = 3_000;
/** SQLSTATEs of a server that is not to be used any more: read_only_sql_transaction, admin_shutdown, crash_shutdown,
 *  cannot_connect_now. */
const LEAVING = new Set(["25006", "57P01", "57P02", "57P03"]);

const BOOLEAN_OID = 16;
const BIGINT_OID = 20;
const NUMERIC_OID = 1700;

/** Values as libsql gives them: whole numbers and sums as numbers (all of ours stay below 2^53), truth as 1 and 0. */
function parserOf(oid: number): (text: string) => unknown {
  if (oid === BIGINT_OID || oid === NUMERIC_OID) return Number;
  if (oid === BOOLEAN_OID) return (text) => (text === "t" ? 1 : 0);
  return types.getTypeParser(oid, "text") as (text: string) => unknown;
}

/** What every connection of ours is made with. */
const OPTIONS: ClientConfig = {
  application_name: "headgate",
  statement_timeout: STATEMENT_LIMIT_MS,
  lock_timeout: LOCK_LIMIT_MS,
  query_timeout: ANSWER_LIMIT_MS,
  idle_in_transaction_session_timeout: IDLE_TRANSACTION_LIMIT_MS,
  keepAlive: true,
  types: { getTypeParser: parserOf },
};

/** How the driver calls back. */
type Connected = ((error: Error) => void) | ((error: null, client: Client) => void);

/** A connection to the server that is current when it is made. `connect` includes the check of the server. */
export class ServerClient extends Client {
  readonly #servers: Servers;
  readonly #server: DatabaseServer;
  readonly #epoch: number;

  constructor(servers: Servers, options: ClientConfig = {}) {
    const server = servers.current;
    const connectionTimeoutMillis = servers.hasSeveral ? ANSWER_OF_SEVERAL_LIMIT_MS : CONNECT_LIMIT_MS;
    super({ ...OPTIONS, ...options, connectionString: server.url, connectionTimeoutMillis });
    this.#servers = servers;
    this.#server = server;
    this.#epoch = servers.epoch;
    // A statement under way fails by itself, the pool replaces an idle connection: nobody else listens all the time.
    this.on("error", (error) => void this.noteFailure(error));
  }

  /** False when what happened since it was made has put its server in doubt. */
  get isCurrent(): boolean {
    return this.#epoch === this.#servers.epoch;
  }

  /** Takes notice of a failure. Whether the connection must not be used any more. */
  noteFailure(cause: unknown): boolean {
    // What the server did not say itself: then nobody knows what state the connection is in.
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
      return this;
    };
    try {
      return await within(hasSeveral ? ANSWER_OF_SEVERAL_LIMIT_MS : CONNECT_LIMIT_MS, connected());
    } catch (cause) {
      this.noteFailure(cause);
      // Not awaited: a server that is gone does not say goodbye.
      this.end().catch(() => {});
      throw hasSeveral ? new StoreFailed(`${this.#server.place}: ${reasonsOf(cause)}`, { cause }) : cause;
    }
  }
}

/** Runs `connect`, and once more with another server when the one it used is in doubt afterwards. */
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

/** A connection of its own. `options`: what differs from other connections of ours. */
export async function connectedClient(databaseUrl: string, options: ClientConfig = {}): Promise<ServerClient> {
  const servers = serversOf(databaseUrl);
  return await onCurrentServer(servers, async () => {
    const client = new ServerClient(servers, options);
    await client.connect();
    return client;
  });
}

/** What each server of a database says of itself, for people; `fault` when it does not answer. Throws as
 *  `parseDatabaseUrl` does. */
export async function standingsOf(databaseUrl: string): Promise<readonly ServerAnswer[]> {
  return await answersOf(parseDatabaseUrl(databaseUrl).servers, probe);
}

async function probe(server: DatabaseServer): Promise<Standing> {
  const connectionTimeoutMillis = ANSWER_OF_SEVERAL_LIMIT_MS;
  const client = new Client({ ...OPTIONS, connectionTimeoutMillis, connectionString: server.url });
  client.on("error", () => {}); // of a connection that is lost later
  const asked = async (): Promise<Standing> => {
    await client.connect();
    return await standingOf(client);
  };
  try {
    return await within(ANSWER_OF_SEVERAL_LIMIT_MS, asked());
  } catch (cause) {
    throw new StoreFailed(reasonsOf(cause), { cause });
  } finally {
    // Not awaited: a server that is gone does not say goodbye.
    client.end().catch(() => {});
  }
}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  const inTheEnd = await inTime(limitMs, work, null);
  if (inTheEnd === null) throw new StoreFailed(`no answer within ${limitMs} ms`);
  return inTheEnd;
}

/** The server's reason without values: its detail, which may hold some, stays in the cause, and nothing prints that. */
export function failureOf(cause: unknown): StoreFailed {
  return cause instanceof StoreFailed ? cause : new StoreFailed(reasonsOf(cause), { cause });
}

/** Several addresses of one host that all refuse come as one error without words. */
function reasonsOf(cause: unknown): string {
  const each = cause instanceof AggregateError ? cause.errors : [cause];
  return each.map((error: unknown) => reasonOf(error)).join("; ");
}
