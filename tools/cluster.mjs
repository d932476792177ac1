// `npm run cluster -- [N] [--keep] [--http-port PORT] [--rtmp-port PORT]`: PostgreSQL and N nodes of Headgate (3) on
// loopback, with load balancer rules for them. ^C stops everything. Without --keep everything is removed; with it
// everything is kept in `cluster` of the data directory and reused the next time. For trying out and for tests: the
// database requires no password, and nodes on one machine do not survive its failure.
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { BuildError, build } from "../scripts/build.mjs";
import { providePrograms, toTest } from "../scripts/programs.mjs";
import { balancerRules } from "./cluster/balancer.mjs";
import { startNode } from "./cluster/node.mjs";
import { startPostgres } from "./cluster/postgres.mjs";

const NODES_LIMIT = 9;
/** From here the balancer passes RTMP on; everything else on this machine connects from 127.0.0.1, without a header. */
const BALANCER_SOURCE = "127.0.0.2";

const asked = askedFor();
try {
  build();
  const missing = providePrograms(toTest.filter(({ name }) => name === "PostgreSQL"));
  if (missing) throw new BuildError(missing);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}

const folder = asked.keep
  ? resolve(process.env.HEADGATE_DATA_DIR ?? "data", "cluster")
  : mkdtempSync(join(tmpdir(), "headgate-cluster-"));
/** What to stop, in this order: the nodes write what is pending before their store stops. */
const nodes = [];
let postgres = null;
let stopping = null;
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => void stop(0));
process.on("exit", () => {
  for (const node of nodes) node.kill();
  postgres?.kill();
  if (!asked.keep) rmSync(folder, { recursive: true, force: true });
});

try {
  await start();
} catch (error) {
  if (stopping === null) {
    console.error(`headgate: ${error.message}`);
    await stop(1);
  }
}

async function start() {
  // The database runs as another user, who must be able to enter this folder but not to list it.
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  chmodSync(folder, 0o711);
  postgres = await startPostgres(join(folder, "postgres"), { connections: 20 * asked.count + 20 });
  const secrets = keptSecrets(join(folder, "secrets.json"));
  const settings = { HEADGATE_RTMP_TRUSTED_PROXIES: BALANCER_SOURCE };
  const shared = { folder, databaseUrl: postgres.url, settings, ...secrets };
  for (let place = 1; place <= asked.count && stopping === null; place += 1) {
    // One after the other: the first node creates the key file, which is copied to the others.
    const node = await startNode(place, shared);
    nodes.push(node);
    node.exit.then((code) => stopping ?? console.error(`headgate: ${node.name} ended with ${code}`));
  }
  if (stopping !== null) return;
  const rules = join(folder, "haproxy.cfg");
  writeFileSync(rules, balancerRules({ http: asked.http, rtmp: asked.rtmp, nodes, source: BALANCER_SOURCE }));
  tell({ rules, ...secrets });
}

/** Stops the nodes, then their store. A second signal exits immediately. */
async function stop(code) {
  if (stopping !== null) process.exit(1);
  stopping = (async () => {
    await Promise.all(nodes.map((node) => node.stop()));
    await postgres?.stop();
    process.exit(code);
  })();
  await stopping;
}

function tell({ rules, apiKey, password }) {
  if (!process.stdout.isTTY) {
    const shown = nodes.map(({ name, pid, http, rtmp, metrics }) => ({ name, pid, http, rtmp, metrics }));
    console.log(JSON.stringify({ ready: true, nodes: shown, apiKey, password, databaseUrl: postgres.url, rules }));
    return;
  }
  const lines = [
    "",
    ...nodes.map(
      (node) => `  ${node.name}  ${node.http}/dashboard/  ${node.rtmp}  ${node.metrics}/metrics  pid ${node.pid}`,
    ),
    "",
    `  API key     ${apiKey}`,
    `  Dashboard   admin, ${password}`,
    `  PostgreSQL  ${postgres.url}`,
    `  Balancer    haproxy -f ${rules}`,
    `              HTTP on 127.0.0.1:${asked.http}, RTMP on 127.0.0.1:${asked.rtmp}; media is sent to each node itself`,
    `  Nodes       HEADGATE_DATA_DIR='${join(folder, "node-1")}' HEADGATE_DATABASE_URL='${postgres.url}' npx headgate nodes`,
    "",
    readFileSync(rules, "utf8").replace(/^(?=.)/gm, "  "),
    "  ^C stops everything.",
  ];
  for (const line of lines) console.log(line);
}

/** Secrets of the first administrator; the same at the next start with kept data. */
function keptSecrets(file) {
  if (!existsSync(file)) {
    const secret = () => randomBytes(24).toString("hex");
    writeFileSync(file, JSON.stringify({ apiKey: `cluster-${secret()}`, password: secret() }), { mode: 0o600 });
  }
  return JSON.parse(readFileSync(file, "utf8"));
}

function askedFor() {
  const options = {
    keep: { type: "boolean", default: false },
    "http-port": { type: "string", default: "8080" },
    "rtmp-port": { type: "string", default: "1935" },
  };
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [said = "3", ...more] = positionals;
    const [count, http, rtmp] = [said, values["http-port"], values["rtmp-port"]].map(Number);
    const isPort = (port) => Number.isInteger(port) && port > 0 && port < 65_536;
    if (
      Number.isInteger(count) &&
      count >= 1 &&
      count <= NODES_LIMIT &&
      more.length === 0 &&
      isPort(http) &&
      isPort(rtmp)
    )
      return { count, http, rtmp, keep: values.keep };
  } catch (error) {
    console.error(`headgate: ${error.message}`);
  }
  console.error(`npm run cluster -- [NODES, 1 to ${NODES_LIMIT}] [--keep] [--http-port PORT] [--rtmp-port PORT]`);
  process.exit(2);
}
