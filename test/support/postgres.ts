// A PostgreSQL server for tests: a fresh cluster in a folder of its own, reached by a socket there.
// Not fsync'd unless asked for: the kernel keeps what a killed process wrote, and only a power cut would lose it.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { type Child, start, until } from "./child.ts";

const INSTALLED = "/usr/lib/postgresql";

export interface PostgresServer {
  /** Of the database that is always there. */
  readonly url: string;
  /** A new database, empty or a copy of the one at `from`, which nobody may be connected to; its URL. */
  newDatabase(from?: string): Promise<string>;
  /** SIGINT: connections are cut, what was committed stays. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Ends the server and removes its folder. */
  close(): Promise<void>;
}

export async function startPostgres(settings: Readonly<Record<string, string>> = {}): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-postgres-"));
  const owner = ownerOf(folder);
  const data = join(folder, "data");
  const options = { ...owner, cwd: folder };
  execFileSync(program("initdb"), ["-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"], {
    ...options,
    stdio: "ignore",
    env: { ...process.env, LC_ALL: "C.UTF-8" },
  });
  const urlOf = (database: string) => `postgres:///${database}?user=postgres&host=${encodeURIComponent(folder)}`;
  let server: Child | null = null;

  async function startServer(): Promise<void> {
    const said = { listen_addresses: "", unix_socket_directories: folder, fsync: "off", max_connections: "60" };
    const words = Object.entries({ ...said, ...settings }).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    server = start(program("postgres"), ["-D", data, ...words], options);
    await until(
      "PostgreSQL answers",
      () =>
        asked(urlOf("postgres"), "select 1").then(
          () => true,
          () => false,
        ),
      60_000,
    );
  }

  async function stopServer(): Promise<void> {
    server?.kill("SIGINT");
    await server?.exit;
    server = null;
  }

  await startServer();
  return {
    url: urlOf("postgres"),
    newDatabase: databasesAt(urlOf("postgres"), "test"),
    stop: stopServer,
    start: startServer,
    async close() {
      await stopServer();
      // Each test's database is some three hundred files: nobody waits until all of a run's are gone.
      spawn("rm", ["-rf", folder], { detached: true, stdio: "ignore" }).unref();
    },
  };
}

/** Makes databases on a running server, named by `prefix` and a number: see `PostgresServer`. */
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

/** PostgreSQL refuses to run as root: then it runs as the user its package made. */
function ownerOf(folder: string): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [, , uid, gid] = (/^postgres:.*$/m.exec(readFileSync("/etc/passwd", "utf8"))?.[0] ?? "").split(":").map(Number);
  if (uid === undefined || gid === undefined) throw new Error("PostgreSQL's package has made no user postgres");
  chownSync(folder, uid, gid);
  return { uid, gid };
}

/** The newest installed version's. */
function program(name: string): string {
  const version = Math.max(...readdirSync(INSTALLED).map(Number).filter(Number.isFinite));
  return join(INSTALLED, String(version), "bin", name);
}

async function asked(url: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
