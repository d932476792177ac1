// The Kysely dialect of the embedded store: statements are sent to a thread of its own as messages, in order. Not here:
// the calls to libsql (libsql-thread.mjs), and the tables (schema.ts, migrations.ts).
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  Kysely,
  type LogEvent,
  type QueryResult,
  SelectQueryNode,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from "kysely";
import { StoreFailed, StoreUnavailable } from "../errors.ts";
import type { Opening, Outcome, Reply, Request } from "./libsql-messages.ts";
import type { Done, Together } from "./statements/together.ts";
import { Turns } from "./statements/turns.ts";
import { bindable } from "./tables/parameters.ts";

/** How long the thread may take to checkpoint and close before it is terminated, ms. */
const CLOSE_LIMIT_MS = 5_000;

/** A request without its number. */
type Unnumbered<R> = R extends unknown ? Omit<R, "id"> : never;

/** The running thread. */
export interface LibsqlThread {
  /** Sends immediately; resolves with the outcome on success, rejects with `StoreFailed` otherwise. */
  send(request: Unnumbered<Request>): Promise<Extract<Outcome, { rows: unknown[] }>>;
  /** False when a running service holds the data directory: this process is then a command beside it. */
  readonly alone: boolean;
  /** Closes the files and ends the thread. */
  close(): Promise<void>;
  /** Resolves when the thread exits unexpectedly; never otherwise. */
  readonly failed: Promise<StoreFailed>;
}

/** Starts the thread on the files of `dataDir`, which must exist. Rejects with `StoreUnavailable`.
 *  @param idle Threads that have closed their store and wait for another: one of them is used, and returned here
 *  afterwards. Opening thousands of stores one after another then saves starting as many threads. null: the thread ends
 *  with its store. */
export async function startLibsqlThread(
  dataDir: string,
  access: Opening["access"],
  idle: Worker[] | null = null,
): Promise<LibsqlThread> {
  const { port1: port, port2 } = new MessageChannel();
  const worker = idle?.pop() ?? newThread();
  worker.ref();
  const opening: Opening = { dataDir, access, port: port2 };
  worker.postMessage(opening, [port2]);
  const alone = await opened(worker, port);

  let lastId = 0;
  let closing = false;
  let dead: StoreFailed | null = null;
  const pending = new Map<number, PromiseWithResolvers<Extract<Outcome, { rows: unknown[] }>>>();
  const failed = withResolvers<StoreFailed>();

  port.on("message", (reply: Reply) => {
    if (reply.kind !== "outcome") return;
    const waiting = pending.get(reply.id);
    pending.delete(reply.id);
    if (reply.outcome.error === undefined) waiting?.resolve(reply.outcome);
    else waiting?.reject(new StoreFailed(reply.outcome.error.message));
  });
  const onError = (cause: Error) => die(new StoreFailed(`the store's thread failed: ${cause.message}`, { cause }));
  const onExit = () => die(new StoreFailed(closing ? "the store is closed" : "the store's thread ended"));
  worker.on("error", onError).on("exit", onExit);

  function die(error: StoreFailed): void {
    dead ??= error;
    for (const waiting of pending.values()) waiting.reject(dead);
    pending.clear();
    if (!closing) failed.resolve(dead);
  }

  function send(request: Unnumbered<Request>): Promise<Extract<Outcome, { rows: unknown[] }>> {
    if (dead !== null || closing) return Promise.reject(dead ?? new StoreFailed("the store is closed"));
    lastId += 1;
    const waiting = withResolvers<Extract<Outcome, { rows: unknown[] }>>();
    pending.set(lastId, waiting);
    port.postMessage({ ...request, id: lastId });
    return waiting.promise;
  }

  return {
    send,
    alone,
    failed: failed.promise,
    async close() {
      if (closing || dead !== null) return;
      const exited = new Promise((resolve) => worker.once("exit", resolve));
      const asked = send({ kind: "close", stays: idle !== null });
      closing = true;
      const timer = setTimeout(() => void worker.terminate(), CLOSE_LIMIT_MS);
      await asked.catch(() => undefined); // a thread that died meanwhile is closed too
      if (idle === null || dead !== null) {
        await exited;
      } else {
        die(new StoreFailed("the store is closed"));
        worker.removeAllListeners();
        worker.unref();
        idle.push(worker);
      }
      clearTimeout(timer);
      port.close();
    },
  };
}

/** Kysely over a started thread; destroying it closes the thread. */
export class LibsqlKysely<DB> extends Kysely<DB> implements Together {
  readonly #thread: LibsqlThread;
  readonly #turns: Turns;

  /** `log`: called after each statement. */
  constructor(thread: LibsqlThread, log: (event: LogEvent) => void = () => {}) {
    const turns = new Turns();
    super({ dialect: libsqlDialect(thread, turns), log });
    this.#thread = thread;
    this.#turns = turns;
  }

  /** One message and a share of one commit: as cheap as a single statement. */
  async together(queries: readonly CompiledQuery[]): Promise<readonly Done[]> {
    const statements = queries.map(({ sql, parameters }) => ({ sql, parameters: parameters.map(bindable) }));
    return (await passed(this.#turns, () => this.#thread.send({ kind: "batch", statements }))).rows as Done[];
  }
}

function libsqlDialect(thread: LibsqlThread, turns: Turns): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new LibsqlDriver(thread, turns),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

class LibsqlDriver implements Driver {
  readonly #thread: LibsqlThread;
  readonly #turns: Turns;

  constructor(thread: LibsqlThread, turns: Turns) {
    this.#thread = thread;
    this.#turns = turns;
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<LibsqlConnection> {
    return new LibsqlConnection(this.#thread, this.#turns);
  }

  async beginTransaction(connection: LibsqlConnection): Promise<void> {
    await connection.begin();
  }

  async commitTransaction(connection: LibsqlConnection): Promise<void> {
    await connection.end("commit");
  }

  async rollbackTransaction(connection: LibsqlConnection): Promise<void> {
    await connection.end("rollback");
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    await this.#thread.close();
  }
}

/** Kysely's view of the one real connection: its statements wait for other transactions to end. */
class LibsqlConnection implements DatabaseConnection {
  readonly #thread: LibsqlThread;
  readonly #turns: Turns;
  #inTransaction = false;

  constructor(thread: LibsqlThread, turns: Turns) {
    this.#thread = thread;
    this.#turns = turns;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const request = {
      kind: "statement",
      sql: query.sql,
      parameters: query.parameters.map(bindable),
      reads: SelectQueryNode.is(query.query),
      inTransaction: this.#inTransaction,
    } as const;
    const { rows, changes } = this.#inTransaction
      ? await this.#thread.send(request)
      : await passed(this.#turns, () => this.#thread.send(request));
    return { rows: rows as R[], numAffectedRows: BigInt(changes) };
  }

  // biome-ignore lint/correctness/useYield: the interface wants a generator, the store has nothing worth streaming
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new StoreFailed("the embedded store does not stream");
  }

  async begin(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#turns.take(() => {
        this.#inTransaction = true;
        this.#thread.send({ kind: "begin" }).then(() => resolve(), reject);
      }, reject);
    }).catch((error: unknown) => {
      this.#release();
      throw error;
    });
  }

  async end(how: "commit" | "rollback"): Promise<void> {
    if (!this.#inTransaction) return; // a commit that failed has been rolled back by the thread
    try {
      await this.#thread.send({ kind: how });
    } finally {
      this.#release();
    }
  }

  #release(): void {
    if (!this.#inTransaction) return;
    this.#inTransaction = false;
    this.#turns.release();
  }
}

/** The result of `act`, which starts when no transaction is open. */
function passed<T>(turns: Turns, act: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => turns.pass(() => act().then(resolve, reject), reject));
}

function newThread(): Worker {
  // Without the loaders of the test runner.
  return new Worker(new URL("./libsql-thread.mjs", import.meta.url), { name: "headgate-store", execArgv: [] });
}

function opened(worker: Worker, port: MessagePort): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const fail = (cause: Error) => reject(new StoreUnavailable(`the store's thread did not start: ${cause.message}`));
    worker.once("error", fail);
    port.once("message", (reply: Reply) => {
      worker.off("error", fail);
      if (reply.kind === "opened") return resolve(reply.alone);
      port.close();
      reject(
        new StoreUnavailable(reply.kind === "refused" ? reply.message : "the store's thread sent an invalid answer"),
      );
    });
  });
}

interface PromiseWithResolvers<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

function withResolvers<T>(): PromiseWithResolvers<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
