// The servers that are measured, each started alone on its own core.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { Agent, request } from "undici";
import { root } from "../scripts/build.mjs";
import { cpuSeconds } from "./_process.mjs";

/** The cores of the server under test and of the load. */
export const SERVER_CORE = "0";
export const LOAD_CORE = "1";
/** A generator that sent later than this, or waited for its core for more than this share of the time,
 *  falsifies the measurement. */
const LATE_LIMIT_MS = 2;
const STARVED_LIMIT = 0.05;
/** Starts the service of any built checkout. */
const SERVE = 'const { run } = await import(process.argv[1]); await run(["serve"]);';

/** One connection per request: the server may close an idle one just when it is used again. */
const dispatcher = new Agent({ pipelining: 0 });

const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
// A signal alone would leave the children running.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A command prefix that gives real-time priority, where the system allows it. */
const canBeRealTime = () => spawnSync("chrt", ["-f", "1", "true"]).status === 0;
const realTime = () => (canBeRealTime() ? ["chrt", "-f", "1"] : []);

/** A child process on one core. */
export function onCore(core, command, args, options = {}) {
  const child = spawn("taskset", ["-c", core, command, ...args], { stdio: ["ignore", "pipe", "inherit"], ...options });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** The program of `crates/bench`, where cargo puts it. */
export const program = () => join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release", "headgate-bench");

/**
 * Runs the load generator to its end. Returns its result, what `probe` returned at each line printed before,
 * and the share of its core that it used during the measurement. `onLine` receives each line. A load that
 * `preempts` runs with real-time priority where that is allowed: it does not wait for other programs on its
 * core.
 */
export async function runLoad(args, probe, { onLine = () => {}, preempts = false } = {}) {
  const [command, ...words] = [...(preempts ? realTime() : []), program(), ...args];
  const child = onCore(LOAD_CORE, command, words);
  const seen = {};
  const own = {};
  let balance = {};
  createInterface(child.stdout).on("line", (line) => {
    if (line.startsWith("{")) {
      balance = JSON.parse(line);
      return;
    }
    seen[line] = { time: performance.now() / 1000, ...probe() };
    own[line] = cpuSeconds(child.pid);
    onLine(line);
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error("the load generator failed");
  const took = seen.measured?.time - seen.measuring?.time;
  return { balance, seen, generatorShare: (own.measured - own.measuring) / took };
}

/** Why a block is not valid for the server; null if it is. */
export function generatorFault(balance) {
  const { generator_late_p99_ms: late, generator_starved: starved } = balance;
  if (late > LATE_LIMIT_MS) return `generator late by ${late} ms`;
  if (starved > STARVED_LIMIT) return `generator without its core for ${(starved * 100).toFixed(0)} % of the time`;
  return null;
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** nginx-rtmp that pushes every stream to `sinkPort`, or nowhere. */
export async function startNginx(sinkPort) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const port = await freePort();
  writeFileSync(
    join(folder, "nginx.conf"),
    `load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
     daemon off; master_process off; worker_processes 1; error_log ${folder}/error.log crit; pid ${folder}/pid;
     events { worker_connections 4096; }
     rtmp { access_log off; server { listen 127.0.0.1:${port}; chunk_size 65536;
       application live { live on; ${sinkPort === null ? "" : `push rtmp://127.0.0.1:${sinkPort}/live;`} } } }`,
  );
  const child = onCore(SERVER_CORE, "/usr/sbin/nginx", [
    "-p",
    folder,
    "-c",
    join(folder, "nginx.conf"),
    "-e",
    join(folder, "start.log"),
  ]);
  await new Promise((resolve) => setTimeout(resolve, 500));
  return {
    name: "nginx-rtmp",
    pid: child.pid,
    target: `127.0.0.1:${port}`,
    names: (n) => numbered(n),
    stop: () => end(child, folder),
  };
}

/** The generator's relay to `sinkPort`, which knows no protocol, of this kind; null where it cannot run. */
export async function startRelay(sinkPort, kind) {
  const port = await freePort();
  const child = onCore(SERVER_CORE, program(), ["relay", `127.0.0.1:${port}`, `127.0.0.1:${sinkPort}`, kind]);
  await once(createInterface(child.stdout), "line");
  return {
    name: `relay ${kind}`,
    pid: child.pid,
    target: `127.0.0.1:${port}`,
    names: (n) => numbered(n),
    async stop() {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

/**
 * Headgate with one media worker and `n` streams. It pushes every stream to `sinkPort`; if `push` is false,
 * only the streams to which the caller adds upstreams. `from`: another built checkout. `onLine` receives each
 * line of its log, from `logLevel` on. `env`: further settings.
 */
export async function startHeadgate(sinkPort, n, options = {}) {
  const { from = root, name = "headgate", push = true, logLevel = "warn", onLine, env = {} } = options;
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const key = `bench-${"k".repeat(30)}`;
  const code = ["--input-type=module", "-e", SERVE, pathToFileURL(join(from, "dist", "cli", "main.js")).href];
  const child = onCore(SERVER_CORE, process.execPath, code, {
    cwd: from,
    stdio: ["ignore", "pipe", onLine === undefined ? "inherit" : "pipe"],
    env: {
      PATH: process.env.PATH,
      HEADGATE_DATA_DIR: folder,
      HEADGATE_HTTP_PORT: "0",
      HEADGATE_RTMP_PORT: "0",
      HEADGATE_METRICS_PORT: "0",
      HEADGATE_MEDIA_HOST: "127.0.0.1",
      HEADGATE_MEDIA_PORT: "0",
      HEADGATE_PUBLIC_ADDRESSES: "127.0.0.1",
      HEADGATE_MEDIA_WORKERS: "1",
      // All load comes from one address.
      HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "0",
      HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "0",
      HEADGATE_MEDIA_AUDIO_WORKERS: "1",
      // The behaviour of a full core is to be measured.
      HEADGATE_LIMITS_LOAD_PERCENT: "0",
      HEADGATE_DRAIN_S: "0",
      HEADGATE_LOG_LEVEL: logLevel,
      HEADGATE_BOOTSTRAP_API_KEY: key,
      // The API accepts upstreams on this machine only in development mode.
      ...(push ? { HEADGATE_UPSTREAM_PUSH: `rtmp://127.0.0.1:${sinkPort}/live/{name}` } : { HEADGATE_DEV: "on" }),
      ...env,
    },
  });
  if (onLine !== undefined) createInterface(child.stderr).on("line", onLine);
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${name} did not start (${code})`);
  });
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
  ended.catch(() => {}); // from here on it is stopped intentionally
  const { http, rtmp, metrics } = JSON.parse(line);
  const call = async (method, path, body) => {
    const headers = { "x-service-apikey": key, "content-type": "application/json" };
    for (;;) {
      const asked = { method, headers, body: body && JSON.stringify(body), dispatcher };
      const { statusCode, body: answer } = await request(`${http}${path}`, asked);
      if (statusCode === 200) return answer.json();
      const text = await answer.text();
      // The API's rate limit per key; nothing is measured yet.
      if (statusCode !== 429) throw new Error(`${method} ${path}: ${statusCode} ${text}`);
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  const streams = [];
  while (streams.length < n) {
    const { id, ingest } = await call("POST", "/stream");
    streams.push({ id, name: ingest.rtmp.streamname });
  }
  return {
    name,
    pid: child.pid,
    process: child,
    target: new URL(rtmp).host,
    http: new URL(http).host,
    streamUrl: new URL("/live", rtmp).href,
    streams,
    /** Address of the metrics. */
    metrics,
    names: () => streams.map(({ name }) => name),
    /** Calls the management API; resolves with its answer. */
    call,
    /** Adds an upstream to a stream. */
    pushTo: ({ id, name }, port) =>
      call("POST", `/stream/${id}/upstream`, { url: `rtmp://127.0.0.1:${port}/live/${name}` }),
    stop: () => end(child, folder),
  };
}

const numbered = (n) => Array.from({ length: n }, (_, i) => `bench${i}`);

async function end(child, folder) {
  child.kill("SIGTERM");
  await once(child, "exit");
  rmSync(folder, { recursive: true, force: true });
}
