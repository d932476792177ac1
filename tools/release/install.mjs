// Installs a release as its users do, with the command of docs/installation.md, and counts what that asks of a network.
import { execFileSync, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** What precedes the file in the documented command.
 *  @type {readonly string[]} */
export const INSTALL = ["npm", "install", "--offline", "--no-update-notifier"];
const DNS_PORT = 53;

/** `archive`: the package; `tree`: where to install it; `scratch`: for npm's own files; `more`: arguments for npm, such as
 *  the platform. As root it runs without a network: in a namespace with nothing but loopback, where a name server and a
 *  registry count requests. Otherwise only the registry counts.
 *  @param {{ archive: string, tree: string, scratch: string, more?: readonly string[] }} options
 *  @returns {{ code: number, said: string, asked: string[], tookMs: number }} how npm ended, and what was asked of a
 *  name server or a registry */
export function installPackage({ archive, tree, scratch, more = [] }) {
  mkdirSync(tree, { recursive: true });
  mkdirSync(scratch, { recursive: true });
  const own = ["--cache", join(scratch, "npm"), "--userconfig", join(scratch, "npmrc"), ...more];
  const report = join(scratch, "report.json");
  const words = [process.execPath, fileURLToPath(import.meta.url), report, tree, ...INSTALL, ...own, archive];
  const [program = "", ...args] = process.getuid?.() === 0 ? [...withoutNetwork(scratch), ...words] : words;
  execFileSync(program, args, { stdio: ["ignore", 2, 2] });
  return JSON.parse(readFileSync(report, "utf8"));
}

/** A network namespace with loopback alone, and a mount namespace in which it has the name server. */
function withoutNetwork(scratch) {
  const servers = join(scratch, "resolv.conf");
  writeFileSync(servers, "nameserver 127.0.0.1\n");
  const script = 'ip link set lo up && mount --bind "$0" /etc/resolv.conf && exec "$@"';
  return ["unshare", "--net", "--mount", "sh", "-c", script, servers];
}

/** Inside the namespace. */
async function install(report, tree, [program, ...args]) {
  const asked = [];
  const registry = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(404).end("{}");
  }).listen(0, "127.0.0.1");
  await once(registry, "listening");
  if (process.getuid?.() === 0) {
    const names = createSocket("udp4", (question) => asked.push(`DNS ${nameIn(question)}`));
    names.bind(DNS_PORT, "127.0.0.1");
    await once(names, "listening");
  }
  const { port } = /** @type {import("node:net").AddressInfo} */ (registry.address());
  const env = { ...process.env, npm_config_registry: `http://127.0.0.1:${port}` };
  const started = performance.now();
  const npm = spawn(program, args, { cwd: tree, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [npm.stdout, npm.stderr])
    stream.on("data", (text) => {
      said += text;
    });
  const [code] = await once(npm, "close");
  const tookMs = performance.now() - started;
  writeFileSync(report, JSON.stringify({ code, said, asked, tookMs }));
  process.exit();
}

/** The name in a DNS question (RFC 1035, 4.1.2), as far as it is printable. */
const nameIn = (question) =>
  question
    .subarray(12)
    .toString("latin1")
    .replaceAll(/[^\w-]+/g, ".");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [report, tree, ...words] = process.argv.slice(2);
  await install(report, tree, words);
}
