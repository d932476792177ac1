// PostgreSQL of the cluster on loopback, from the Debian packages: reached through a socket in a folder that only its
// owner may enter.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import pg from "pg";

const INSTALLED = "/usr/lib/postgresql";
const DATABASE = "headgate";
const READY_LIMIT_MS = 60_000;
/** Interval between checks whether it answers, ms. */
const ASKED_EVERY_MS = 100;

/** Starts the server on `data`, which is created if it does not exist, and creates its database. `settings` may open a
 *  TCP port as well. */
export async function startPostgres(data, { connections, settings = {} }) {
  // A socket's path may have only 107 bytes, so it is not in the data folder.
  const sockets = mkdtempSync(join(tmpdir(), "headgate-postgres-"));
  const owner = ownerIds();
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (owner.uid !== undefined) requireEntry(dirname(data));
  for (const folder of [sockets, data]) if (owner.uid !== undefined) chownSync(folder, owner.uid, owner.gid);
  const options = { ...owner, cwd: sockets };
  if (!existsSync(join(data, "PG_VERSION"))) {
    const words = ["-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8"];
    const env = { ...process.env, LC_ALL: "C.UTF-8" };
    execFileSync(program("initdb"), words, { ...options, env, stdio: ["ignore", "ignore", "inherit"] });
  }
  const said = { listen_addresses: "", unix_socket_directories: sockets, max_connections: connections, ...settings };
  const words = Object.entries(said).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  // In its own process group, so that ^C does not reach it before the nodes have stopped.
  const server = spawn(program("postgres"), ["-D", data, ...words], { ...options, detached: true, stdio: "ignore" });
  const exit = once(server, "exit");
  const kill = () => {
    server.kill("SIGINT");
    rmSync(sockets, { recursive: true, force: true });
  };
  const urlOf = (database) =>
    `postgres:///${database}?user=postgres&host=${encodeURIComponent(sockets)}&port=${settings.port ?? 5432}`;
  try {
    await answers(urlOf("postgres"), server);
    const [found] = await query(urlOf("postgres"), `select 1 from pg_database where datname = '${DATABASE}'`);
    if (found === undefined) await query(urlOf("postgres"), `create database ${DATABASE}`);
  } catch (error) {
    kill();
    throw error;
  }
  return {
    url: urlOf(DATABASE),
    kill,
    /** SIGINT: connections are cut, committed data stays. */
    async stop() {
      server.kill("SIGINT");
      await exit;
      rmSync(sockets, { recursive: true, force: true });
    },
  };
}

/** Runs one query on the database at `url`. */
export async function query(url, text) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

async function answers(url, server) {
  const deadline = performance.now() + READY_LIMIT_MS;
  for (;;) {
    const fault = await query(url, "select 1").then(() => null, String);
    if (fault === null) return;
    if (server.exitCode !== null || performance.now() > deadline)
      throw new Error(`PostgreSQL does not start: ${fault}`);
    await new Promise((resolve) => setTimeout(resolve, ASKED_EVERY_MS));
  }
}

/** PostgreSQL refuses to run as root: in that case it runs as the user that its package created.
 *  @type {() => { readonly uid?: number; readonly gid?: number }} */
export function ownerIds() {
  if (process.getuid?.() !== 0) return {};
  const [, , uid, gid] = (/^postgres:.*$/m.exec(readFileSync("/etc/passwd", "utf8"))?.[0] ?? "").split(":").map(Number);
  if (uid === undefined || gid === undefined) throw new Error("PostgreSQL's package has made no user postgres");
  return { uid, gid };
}

/** Checks that other users may pass through `folder` and its parents. */
function requireEntry(folder) {
  if ((statSync(folder).mode & 0o001) === 0) {
    throw new Error(`PostgreSQL runs as the user postgres, who may not go through ${folder}: chmod o+x ${folder}`);
  }
  if (dirname(folder) !== folder) requireEntry(dirname(folder));
}

/** A program of the newest installed version.
 *  @type {(name: string) => string} */
export function program(name) {
  const version = Math.max(...readdirSync(INSTALLED).map(Number).filter(Number.isFinite));
  return join(INSTALLED, String(version), "bin", name);
}
