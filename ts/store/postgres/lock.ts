// Ensures that only one service per node name uses a database: an advisory lock that the server releases whenever and
// however the connection ends. Several nodes share the database; a command can tell whether any of them is running.
import type { ClientConfig } from "pg";
import { StoreFailed, StoreUnavailable } from "../../errors.ts";
import { inTime } from "../../in-time.ts";
import { connectedClient, failureOf, type ServerClient } from "./connecting.ts";

/** Keys of our advisory locks in a database: chosen so that no other program is likely to use them. */
const SERVICE_LOCK = "4923001";
const MIGRATION_LOCK = "4923002";
const NODE_LOCKS = "4923003";
/** How long to wait for a lock that a predecessor holds while it stops, ms. */
const TAKE_LIMIT_MS = 3_000;
/** How long to wait while another process migrates the tables, and how long one statement of a migration may take: on
 *  large tables creating an index takes minutes, ms. */
const MIGRATION_LIMIT_MS = 3_600_000;
/** How long the response to such a statement is awaited, ms. */
const MIGRATION_ANSWER_LIMIT_MS = MIGRATION_LIMIT_MS + 5_000;
const TRY_EVERY_MS = 200;
/** Delay before a lost connection is reopened, ms. */
const RECONNECT_MS = 1_000;
/** How often the connection that holds the lock is asked whether it still works, ms: nothing else uses it, and nothing
 *  closes it when its server has lost power. */
const PROBE_EVERY_MS = 2_000;
/** A server that is gone does not close the connection, ms. */
const CLOSE_LIMIT_MS = 1_000;
/** How long a new name waits for a lost connection to be replaced, ms. */
const RENAME_LIMIT_MS = 10_000;
/** The server notices within this time that our machine is gone, seconds: 10 + 3 × 5. */
const KEEPALIVES = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

export interface ServiceLock {
  /** False when another process holds it. */
  readonly held: boolean;
  release(): Promise<void>;
  /** Takes the lock of another name, and releases the former one. Rejects with `StoreFailed` when it is held. */
  rename(node: string): Promise<void>;
  /** Resolves when another service has taken the lock while our connection was lost. */
  readonly lost: Promise<StoreFailed>;
}

/** Takes the lock of a node if it is free or becomes free soon; for a command, `name` null, that of the whole database,
 *  which is free while no service runs. Rejects with `StoreUnavailable` when the server cannot be reached. */
export async function takeServiceLock(databaseUrl: string, name: string | null): Promise<ServiceLock> {
  let node = name;
  let lose: (error: StoreFailed) => void = () => {};
  const lost = new Promise<StoreFailed>((resolve) => {
    lose = resolve;
  });
  let released = false;
  let retry: NodeJS.Timeout | undefined;
  let probing: NodeJS.Timeout | undefined;
  let client = await connected(databaseUrl).catch((cause: unknown) => {
    throw new StoreUnavailable(failureOf(cause).message, { cause });
  });
  const held = await taken(client, node, node === null ? 0 : TAKE_LIMIT_MS);
  if (held) keep(client);
  else await client.end();

  /** Keeps the lock: when the connection breaks, a new one replaces it. */
  function keep(current: ServerClient): void {
    client = current;
    current.once("end", again);
    probing = setTimeout(() => void probe(current), PROBE_EVERY_MS).unref();
  }

  /** A connection that does not answer is closed, and then replaced. */
  async function probe(current: ServerClient): Promise<void> {
    if (released || !(await current.answers())) return;
    probing = setTimeout(() => void probe(current), PROBE_EVERY_MS).unref();
  }

  function again(): void {
    if (released) return;
    clearTimeout(probing);
    clearTimeout(retry);
    retry = setTimeout(() => void retake().catch(again), RECONNECT_MS).unref();
  }

  async function retake(): Promise<void> {
    const next = await connected(databaseUrl);
    await next.endBackendOf(client);
    const isOurs = await taken(next, node, TAKE_LIMIT_MS).catch(async (error: unknown) => {
      await next.end();
      throw error;
    });
    if (isOurs && !released) return keep(next);
    await next.end();
    if (!released)
      lose(new StoreFailed("another headgate process took the name of this node while the connection was lost"));
  }

  /** The connection that holds the lock, once it answers. */
  async function working(): Promise<ServerClient> {
    for (let waited = 0; ; waited += TRY_EVERY_MS) {
      if (await client.answers()) return client;
      if (waited > RENAME_LIMIT_MS) throw new StoreFailed("the database does not answer");
      await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
    }
  }

  return {
    held,
    lost,
    async rename(next) {
      const by = await working();
      if (!(await taken(by, next, TAKE_LIMIT_MS))) throw new StoreFailed(`another headgate process is node ${next}`);
      const former = node;
      node = next;
      await by.ask({ text: "select pg_advisory_unlock($1, hashtext($2))", values: [NODE_LOCKS, former] });
    },
    async release() {
      released = true;
      clearTimeout(retry);
      clearTimeout(probing);
      if (held) await inTime(CLOSE_LIMIT_MS, client.end(), undefined).catch(() => {}); // when broken, the server has already released the lock
    },
  };
}

/** Runs `act` while no other process migrates the tables, with the connection that holds the lock: its statements may
 *  take longer than those of others. */
export async function withMigrationLock<T>(databaseUrl: string, act: (client: ServerClient) => Promise<T>): Promise<T> {
  const client = await connected(databaseUrl, { query_timeout: MIGRATION_ANSWER_LIMIT_MS });
  try {
    await client.query(`set statement_timeout = ${MIGRATION_LIMIT_MS}; set lock_timeout = ${MIGRATION_LIMIT_MS}`);
    await migrationLock(client);
    // Not for locks of tables: the statements of other nodes wait behind the one that waits for such a lock.
    await client.query("set lock_timeout to default");
    return await act(client);
  } finally {
    await client.end();
  }
}

/** Tried again and again: an index is built concurrently only while no statement of others waits. */
async function migrationLock(client: ServerClient): Promise<void> {
  for (let waited = 0; waited < MIGRATION_LIMIT_MS; waited += TRY_EVERY_MS) {
    const text = `select pg_try_advisory_lock(${MIGRATION_LOCK}) as taken`;
    const { rows } = await client.ask<{ taken: number }>({ text });
    if (rows[0]?.taken === 1) return;
    await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
  }
  throw new StoreFailed("another process has been migrating the tables for an hour");
}

async function connected(databaseUrl: string, options: ClientConfig = {}): Promise<ServerClient> {
  return await connectedClient(databaseUrl, { options: KEEPALIVES, ...options });
}

/** A service shares the database lock with other nodes, and holds that of its name exclusively. A version without
 *  support for several nodes holds the database lock exclusively. */
async function taken(client: ServerClient, node: string | null, limitMs: number): Promise<boolean> {
  const locks =
    node === null
      ? { text: "select pg_try_advisory_lock($1) as taken", values: [SERVICE_LOCK] }
      : {
          text: "select pg_try_advisory_lock_shared($1) and pg_try_advisory_lock($2, hashtext($3)) as taken",
          values: [SERVICE_LOCK, NODE_LOCKS, node],
        };
  for (let waited = 0; ; waited += TRY_EVERY_MS) {
    const { rows } = await client.ask<{ taken: number }>(locks);
    if (rows[0]?.taken === 1) return true;
    if (waited >= limitMs) return false;
    await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
  }
}
