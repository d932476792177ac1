// A PostgreSQL server for tests: a new cluster in a folder of its own, reached through a socket there.
// Without fsync unless requested: the kernel keeps what a killed process wrote, and only a power cut would lose it.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { Client } from "pg";
import { ownerIds, program } from "../../tools/cluster/postgres.mjs";
import { type Child, run, start, until } from "./child.ts";

export interface PostgresServer {
  /** URL of the database that always exists. */
  readonly url: string;
  /** Creates a database, empty or a copy of the one at `from`, to which nobody may be connected; returns its URL. */
  newDatabase(from?: string): Promise<string>;
  /** Contains its socket and its data; the URL refers to it. */
  readonly folder: string;
  /** SIGINT: connections are cut, committed data stays. */
  stop(): Promise<void>;
  /** Ends it like a crash: by SIGKILL, or by SIGQUIT, which its manual calls an immediate shutdown. */
  crash(signal: "SIGKILL" | "SIGQUIT"): Promise<void>;
  /** Promotes a standby to primary. */
  promote(): Promise<void>;
  start(): Promise<void>;
  /** Ends the server and removes its folder. */
  close(): Promise<void>;
}

export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  /** The server that it is to be a standby of; null for a primary. */
  primary: PostgresServer | null = null,
): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-postgres-"));
  const owner = ownerIds();
  if (owner.uid !== undefined && owner.gid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const data = join(folder, "data");
  const options = { ...owner, cwd: folder };
  const make = (name: string, args: readonly string[]) =>
    execFileSync(program(name), ["-D", data, "-U", "postgres", "--no-sync", ...args], {
      ...options,
      stdio: "ignore",
      env: { ...process.env, LC_ALL: "C.UTF-8" },
    });
  if (primary === null) newCluster(data, owner.uid, () => make("initdb", ["-A", "trust", "-E", "UTF8"]));
  else make("pg_basebackup", ["-h", primary.folder, "-R", "-c", "fast"]);
  // The socket's name contains the port.
  const place = `host=${encodeURIComponent(folder)}${settings.port === undefined ? "" : `&port=${settings.port}`}`;
  const urlOf = (database: string) => `postgres:///${database}?user=postgres&${place}`;
  let server: Child | null = null;

  async function startServer(): Promise<void> {
    const said = { listen_addresses: "", unix_socket_directories: folder, fsync: "off", max_connections: "60" };
    const words = Object.entries({ ...said, ...settings }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    await until("PostgreSQL answers", () => hasStarted(words), 60_000);
  }

  /** A killed server leaves processes that must end before another one starts: in that case it is started once more. */
  async function hasStarted(words: readonly string[]): Promise<boolean> {
    if (server === null) {
      const started = start(program("postgres"), ["-D", data, ...words], options);
      server = started;
      started.exit.finally(() => {
        if (server === started) server = null;
      });
    }
    return await asked(urlOf("postgres"), "select 1").then(
      () => true,
      () => false,
    );
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const ended = server;
    ended?.kill(signal);
    await ended?.exit;
  }

  await startServer();
  return {
    url: urlOf("postgres"),
    folder,
    newDatabase: databasesAt(urlOf("postgres"), "test"),
    stop: () => end("SIGINT"),
    crash: end,
    start: startServer,
    async promote() {
      await run(program("pg_ctl"), ["promote", "-D", data], options);
    },
    async close() {
      await end("SIGINT");
      // Each test's database is some three hundred files: do not wait until all of a run's are deleted.
      spawn("rm", ["-rf", folder], { detached: true, stdio: "ignore" }).unref();
    },
  };
}

/** Puts a new cluster into a folder. One is made for each version and kept: a copy takes a fifth of the processor time. */
function newCluster(data: string, uid: number | undefined, make: () => void): void {
  const version = execFileSync(program("postgres"), ["--version"], { encoding: "utf8" }).replaceAll(/[^\w.]+/g, "-");
  const kept = resolve(".build", "postgres", `${version}${uid ?? process.getuid?.()}`);
  const copy = (from: string, to: string) => execFileSync("cp", ["-a", from, to]);
  if (existsSync(kept)) return void copy(kept, data);
  make();
  mkdirSync(dirname(kept), { recursive: true });
  const begun = `${kept}-${process.pid}-${performance.now()}`;
  copy(data, begun);
  try {
    renameSync(begun, kept);
  } catch {
    // Another test process was faster.
    rmSync(begun, { recursive: true });
  }
}

/** Creates databases on a running server, named by `prefix` and a number: see `PostgresServer`. */
export function databasesAt(serverUrl: string, prefix: string): PostgresServer["newDatabase"] {
  let databases = 0;
  return async (from) => {
    databases += 1;
    const name = `${prefix}${databases}`;
    const template = from === undefined ? "" : ` template ${new URL(from).pathname.slice(1)}`;
    await asked(serverUrl, `create database ${name}${template}`);
    const url = new URL(serverUrl);
    url.pathname = `/${name}`;
    return url.href;
  };
}

/** Runs one statement on the server of a URL. */
export async function asked(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
