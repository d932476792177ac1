// The thread of the embedded store: owns the libsql handle and its fsyncs, so that no other thread waits for a disk.
// @ts-check
// Plain JavaScript because Node runs it as a thread from the sources as well as from dist. It handles SQL text and
// knows no schema. One store at a time; afterwards another one if requested, else the thread ends.
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { parentPort, receiveMessageOnPort } from "node:worker_threads";
import Database from "libsql";

/** @typedef {import("./libsql-messages.ts").Opening} Opening */
/** @typedef {import("./libsql-messages.ts").Request} Request */
/** @typedef {import("./libsql-messages.ts").Outcome} Outcome */
/** @typedef {import("./libsql-messages.ts").StatementRequest} StatementRequest */
/** @typedef {import("./libsql-messages.ts").BatchRequest} BatchRequest */

/** How many waiting statements share one commit; the rest waits for the next one. */
const GROUP_LIMIT = 256;
/** Most prepared statements kept; the service has a few dozen, so reaching this means SQL with values in its text. */
const STATEMENTS_LIMIT = 500;
/** How long libsql waits for another process that reads or backs up the file. */
const BUSY_TIMEOUT_MS = 5_000;
/** How long a service waits for a command that briefly holds the data directory. */
const LOCK_TIMEOUT_MS = 1_000;

/** How often a successor tries to take over the data directory, ms. */
const TAKE_OVER_EVERY_MS = 200;

/** @type {Map<string, import("libsql").Statement>} */
const statements = new Map();
/** Data directory of the open store. */
let dataDir = "";
/** @type {Opening["access"]} */
let access = "service";
/** @type {Opening["port"]} */
let port;
/** @type {ReturnType<typeof openLock>} */
let lock;
/** @type {ReturnType<typeof openDatabase>} */
let db = null;

parentPort?.once("message", open);

/** @param {Opening} opening */
function open(opening) {
  ({ dataDir, access, port } = opening);
  lock = access === "reader" ? [] : openLock();
  db = lock === "refused" ? null : openDatabase();
  if (db === null) return;
  port.on("message", (/** @type {Request} */ first) => {
    const requests = [first];
    while (requests.length < GROUP_LIMIT) {
      const next = receiveMessageOnPort(port);
      if (next === undefined) break;
      requests.push(next.message);
    }
    answer(requests);
  });
  port.postMessage({ kind: "opened", alone: lock !== "elsewhere" });
}

/** Locks the data directory for this process. The locks are SQLite's own, on separate files: the kernel releases them
 *  whenever and however the process ends, and the database stays open to backups and to commands, which work beside a
 *  service that holds it ("elsewhere"). */
function openLock() {
  try {
    if (access === "successor") return succeed();
    const handles = [openFile("headgate.lock"), openFile("headgate-successor.lock")];
    try {
      for (const handle of handles) {
        if (access === "service") handle.prepare(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`).all();
        handle.exec("BEGIN EXCLUSIVE");
      }
      // To be shared with a successor of this service.
      const shared = handles.pop();
      shared?.exec("ROLLBACK");
      shared?.close();
      return handles;
    } catch (error) {
      for (const handle of handles) handle.close();
      if (describe(error).code !== "SQLITE_BUSY") throw error;
      if (access === "command") return "elsewhere";
      refuse(`the data directory ${dataDir} is in use by another headgate process`);
    }
  } catch (error) {
    refuse(`cannot open the locks in ${dataDir}: ${describe(error).message}`);
  }
  return "refused";
}

/** Opens the store beside the service to be replaced: no third one gets in while either is there. The lock that
 *  successors share is held at once, and the first one's as soon as it is free. */
function succeed() {
  const shared = openFile("headgate-successor.lock");
  shared.exec("BEGIN");
  shared.prepare("SELECT count(*) FROM sqlite_master").all();
  const handles = [shared];
  const own = openFile("headgate.lock");
  const taking = setInterval(() => {
    try {
      own.exec("BEGIN EXCLUSIVE");
    } catch {
      return; // held by the former service, or by another successor
    }
    clearInterval(taking);
    handles.push(own);
  }, TAKE_OVER_EVERY_MS);
  taking.unref();
  return handles;
}

function openDatabase() {
  try {
    const handle = openFile("headgate.db");
    handle.prepare(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`).all();
    if (access === "reader") {
      handle.exec("PRAGMA query_only = ON");
      return handle;
    }
    handle.prepare("PRAGMA journal_mode = WAL").all();
    handle.exec("PRAGMA synchronous = FULL");
    handle.exec("PRAGMA foreign_keys = ON");
    return handle;
  } catch (error) {
    refuse(`cannot open ${join(dataDir, "headgate.db")}: ${describe(error).message}`);
    return null;
  }
}

/** libsql creates files that everyone can read; created here first, they and their -wal and -shm are private. An
 *  existing file is left alone: POSIX releases a process's locks when it closes any descriptor of the file.
 *  @param {string} name */
function openFile(name) {
  const path = join(dataDir, name);
  if (!existsSync(path)) closeSync(openSync(path, "a", 0o600));
  return new Database(path);
}

/** @param {string} message */
function refuse(message) {
  port.postMessage({ kind: "refused", message });
  port.close();
}

/** Answers requests in order. Waiting requests outside of a transaction form a group with one commit.
 *  @param {readonly Request[]} requests */
function answer(requests) {
  /** @type {(StatementRequest | BatchRequest)[]} */
  let group = [];
  for (const request of requests) {
    if (request.kind === "batch" || (request.kind === "statement" && !request.inTransaction)) {
      group.push(request);
      continue;
    }
    answerGroup(group);
    group = [];
    answerAlone(request);
  }
  answerGroup(group);
}

/** @param {Exclude<Request, BatchRequest>} request */
function answerAlone(request) {
  switch (request.kind) {
    case "statement":
      return reply(request.id, run(request));
    case "begin":
      return reply(request.id, control("BEGIN IMMEDIATE"));
    case "commit": {
      const outcome = control("COMMIT");
      if (outcome.error !== undefined) rollBack();
      return reply(request.id, outcome);
    }
    case "rollback":
      return reply(request.id, rollBack());
    case "close":
      statements.clear();
      db?.close();
      if (typeof lock === "object") for (const handle of lock) letGo(handle);
      if (request.stays) parentPort?.once("message", open);
      reply(request.id, { rows: [], changes: 0 });
      port.close();
  }
}

/** Prepared statements keep a closed handle's file open until they are collected, but no lock.
 *  @param {import("libsql").Database} handle */
function letGo(handle) {
  if (handle.inTransaction) handle.exec("ROLLBACK");
  handle.close();
}

/** Reads go first: they need no commit, and a sender that waits for its write cannot have sent a read after it.
 *  @param {readonly (StatementRequest | BatchRequest)[]} group */
function answerGroup(group) {
  /** @type {(StatementRequest | BatchRequest)[]} */
  const writes = [];
  for (const request of group) {
    if (request.kind === "statement" && (request.reads || access === "reader")) reply(request.id, run(request));
    else writes.push(request);
  }
  if (writes.length > 0) answerWrites(writes);
}

/** A failed statement or batch rolls back only itself; a failed commit fails the whole group. No reply is sent before
 *  the commit.
 *  @param {readonly (StatementRequest | BatchRequest)[]} group */
function answerWrites(group) {
  const shared = group.length > 1 || group.some(({ kind }) => kind === "batch");
  const begun = shared ? control("BEGIN IMMEDIATE") : null;
  if (begun?.error !== undefined) return replyAll(group, begun);
  /** @type {Outcome[]} */
  const outcomes = [];
  for (const request of group) {
    const outcome = request.kind === "batch" ? runBatch(request) : run(request);
    // Errors such as a full disk end the transaction on their own: then nothing of the group is kept.
    if (begun !== null && outcome.error !== undefined && !db?.inTransaction) return replyAll(group, outcome);
    outcomes.push(outcome);
  }
  const committed = begun === null ? null : control("COMMIT");
  if (committed?.error !== undefined) {
    rollBack();
    return replyAll(group, committed);
  }
  for (const [index, request] of group.entries()) {
    const outcome = outcomes[index];
    if (outcome !== undefined) reply(request.id, outcome);
  }
}

/** Inside the group's transaction. @param {BatchRequest} batch @returns {Outcome} */
function runBatch({ statements: all }) {
  const begun = control("SAVEPOINT batch");
  if (begun.error !== undefined) return begun;
  const done = [];
  for (const statement of all) {
    const outcome = run(statement);
    if (outcome.error !== undefined) {
      if (db?.inTransaction) control("ROLLBACK TO batch; RELEASE batch");
      return outcome;
    }
    done.push(outcome);
  }
  const kept = control("RELEASE batch");
  return kept.error !== undefined ? kept : { rows: done, changes: 0 };
}

/** @param {Pick<StatementRequest, "sql" | "parameters">} statement @returns {Outcome} */
function run({ sql, parameters }) {
  try {
    const statement = prepare(sql);
    // libsql binds numbers as floats, so integers are bound as bigint.
    const bound = parameters.map((value) =>
      Number.isSafeInteger(value) ? BigInt(/** @type {number} */ (value)) : value,
    );
    if (/** @type {boolean} */ (statement.reader)) return { rows: statement.all(bound), changes: 0 };
    return { rows: [], changes: statement.run(bound).changes };
  } catch (error) {
    statements.delete(sql);
    return { error: describe(error) };
  }
}

/** @param {string} sql */
function prepare(sql) {
  if (/^\s*(create|alter|drop)\b/i.test(sql)) statements.clear();
  const known = statements.get(sql);
  if (known !== undefined) return known;
  if (db === null) throw new Error("the database is closed");
  const statement = db.prepare(sql);
  if (statements.size >= STATEMENTS_LIMIT) statements.clear();
  statements.set(sql, statement);
  return statement;
}

/** @param {string} sql @returns {Outcome} */
function control(sql) {
  try {
    db?.exec(sql);
    return { rows: [], changes: 0 };
  } catch (error) {
    return { error: describe(error) };
  }
}

/** @returns {Outcome} */
function rollBack() {
  return db?.inTransaction ? control("ROLLBACK") : { rows: [], changes: 0 };
}

/** @param {readonly Request[]} group @param {Outcome} outcome */
function replyAll(group, outcome) {
  for (const request of group) reply(request.id, outcome);
}

/** @param {number} id @param {Outcome} outcome */
function reply(id, outcome) {
  port.postMessage({ kind: "outcome", id, outcome });
}

/** @param {unknown} error */
function describe(error) {
  if (!(error instanceof Error)) return { code: "", message: String(error) };
  return { code: "code" in error ? String(error.code) : "", message: error.message };
}
