// The embedded store: durable, one process at a time, isolated transactions, errors that say what to do.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { exitCodeOf } from "../../ts/cli/exit-code.ts";
import { StoreUnavailable } from "../../ts/errors.ts";
import { openStore, type Store } from "../../ts/store/open.ts";
import { beginStore } from "../support/stores.ts";

let folder: string;
const open: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-store-"));
});

afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

/** Its tables are there already, unless it `isNew`. */
async function opened({ isNew = false } = {}): Promise<Store> {
  const dataDir = join(folder, "data");
  if (!isNew) beginStore(dataDir);
  const store = await openStore({ dataDir, databaseUrl: null });
  open.push(store);
  return store;
}

const organisation = (id: string) => ({
  id,
  hash: id,
  name: "Test",
  plan: "paid" as const,
  trial_ends_at: null,
  enabled: 1,
  webhook: null,
  created_at: 1_767_225_600_000,
  updated_at: 1_767_225_600_000,
});

describe("opening", () => {
  test("creates a data directory and files that only the owner can read", async () => {
    await opened({ isNew: true });
    const mode = (path: string) => statSync(join(folder, path)).mode & 0o777;
    expect(mode("data")).toBe(0o700);
    expect(mode("data/headgate.db")).toBe(0o600);
    expect(mode("data/headgate.db-wal")).toBe(0o600);
  });

  test("uses a write-ahead log, full synchronisation and foreign keys", async () => {
    const { db } = await opened();
    const pragma = async (name: string) =>
      Object.values((await sql<object>`${sql.raw(`pragma ${name}`)}`.execute(db)).rows[0] ?? {})[0];
    expect(await pragma("journal_mode")).toBe("wal");
    expect(await pragma("synchronous")).toBe(2);
    expect(await pragma("foreign_keys")).toBe(1);
    expect(await pragma("busy_timeout")).toBe(5_000);
  });

  test("finds every row again after a close", async () => {
    const first = await opened();
    await first.db.insertInto("organisation").values(organisation("a")).execute();
    await first.close();
    const second = await opened();
    const noLimits = { max_streams: null, max_ingest_kbps: null, max_setups_per_second: null, operates: null };
    const rows = await second.db.selectFrom("organisation").selectAll().execute();
    expect(rows).toEqual([{ ...organisation("a"), ...noLimits }]);
  });

  test("finds every acknowledged row again after kill -9", async () => {
    await (await opened()).close();
    const child = startWriter(join(folder, "data"));
    let acknowledged = 0;
    for await (const line of child.stdout) {
      acknowledged += String(line).split("\n").length - 1;
      if (acknowledged >= 50) break;
    }
    expect(acknowledged).toBeGreaterThanOrEqual(50);
    child.kill("SIGKILL");
    await once(child, "exit");
    const store = await opened();
    const rows = await store.db.selectFrom("sequence").selectAll().execute();
    expect(rows.length).toBeGreaterThanOrEqual(acknowledged);
  });

  test("refuses a data directory that another process uses, and opens it when that one is gone", async () => {
    await (await opened()).close();
    const child = startWriter(join(folder, "data"));
    await once(child.stdout, "data");
    const refusal = await opened().catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreUnavailable);
    expect(String(refusal)).toContain(
      `the data directory ${join(folder, "data")} is in use by another headgate process`,
    );
    expect(exitCodeOf(refusal)).toBe(4);
    child.kill("SIGKILL");
    await once(child, "exit");
    await opened();
  });

  test("refuses a second opening in the same process", async () => {
    await opened();
    await expect(opened()).rejects.toThrow("in use by another headgate process");
  });

  test("explains what is wrong with a file that is not a database", async () => {
    await (await opened()).close();
    writeFileSync(join(folder, "data", "headgate.db"), "this is not a database ".repeat(100));
    await expect(opened()).rejects.toThrow(/cannot open .*headgate\.db: file is not a database/);
  });

  test("explains what is wrong with a data directory that cannot be created", async () => {
    writeFileSync(join(folder, "file"), "");
    const dataDir = join(folder, "file", "data");
    await expect(openStore({ dataDir, databaseUrl: null })).rejects.toThrow(/cannot create the data directory/);
  });

  test("an idle thread opens another store, and no longer locks the previous one", async () => {
    const idleThreads: Worker[] = [];
    const at = (name: string) => openStore({ dataDir: join(folder, name), databaseUrl: null, idleThreads });
    const first = await at("first");
    await sql`insert into sequence (name, next) values ('here', 1)`.execute(first.db);
    await first.close();
    await expect(sql`select 1`.execute(first.db)).rejects.toThrow("destroyed");
    // The one that writes, and the one that reads.
    expect(idleThreads).toHaveLength(2);
    const threads = new Set(idleThreads);

    const second = await at("second");
    expect(idleThreads).toHaveLength(0);
    const { rows } = await sql`select * from sequence where name = 'here'`.execute(second.db);
    expect(rows).toEqual([]);
    await (await openStore({ dataDir: join(folder, "first"), databaseUrl: null })).close();
    await second.close();
    expect(new Set(idleThreads)).toEqual(threads);
    for (const thread of threads) await thread.terminate();
  });

  test("refuses a store of a newer headgate", async () => {
    const { db, close } = await opened();
    await sql`insert into migration (position, name) values (99, '0100-later')`.execute(db);
    await close();
    await expect(opened()).rejects.toThrow("created by a newer headgate (it has the migration 0100-later)");
  });
});

/** A process that opens the data directory and writes rows, one line of output for each that was
 *  acknowledged. */
function startWriter(dataDir: string) {
  const thread = new URL("../../ts/store/libsql-thread.mjs", import.meta.url);
  const script = join(folder, "writer.mjs");
  writeFileSync(
    script,
    `import { MessageChannel, Worker } from "node:worker_threads";
    const { port1, port2 } = new MessageChannel();
    const opening = { dataDir: ${JSON.stringify(dataDir)}, access: "service", port: port2 };
    new Worker(new URL(${JSON.stringify(thread.href)})).postMessage(opening, [port2]);
    const sql = "insert into sequence (name, next) values (?, 0)";
    let id = 0;
    port1.on("message", (reply) => {
      if (reply.outcome?.error) throw new Error(reply.outcome.error.message);
      if (reply.kind === "outcome") console.log(reply.id);
      id += 1;
      port1.postMessage({ kind: "statement", id, sql, parameters: [String(id)], reads: false, inTransaction: false });
    });`,
  );
  return spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
}
