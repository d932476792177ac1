// The servers that are measured, each started alone on its own core.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../build.mjs";

/** The server under test runs here, the load on the other. */
export const SERVER_CORE = "0";
export const LOAD_CORE = "1";
const TICKS_PER_SECOND = 100;
/** How long an idle server is watched, ms: its own cost is taken off. */
const IDLE_MS = 3_000;
/** Memory that moves by less than this for so many seconds is steady; nobody waits longer than the limit. */
const STEADY_KB = 500;
const STEADY_S = 10;
const STEADY_LIMIT_S = 40;

const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** A child on one core. */
export function onCore(core, command, args, options = {}) {
  const child = spawn("taskset", ["-c", core, command, ...args], { stdio: ["ignore", "pipe", "inherit"], ...options });
  children.add(child);
  child.once("exit", () => children.delete(child));
  return child;
}

/** CPU seconds a process has used so far, all threads. */
export function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Resident memory of a process, kB. */
export function residentKb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Resident memory of a process once it is steady, kB: V8 gives back what a burst of work left only after seconds. */
export async function steadyResidentKb(pid) {
  let samples = [];
  for (let waited = 0; waited < STEADY_LIMIT_S; waited += 1) {
    samples = [...samples, residentKb(pid)].slice(-STEADY_S);
    if (samples.length === STEADY_S && Math.max(...samples) - Math.min(...samples) < STEADY_KB) break;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  return samples.at(-1);
}

/** CPU milliseconds that an idle process uses in a second. */
export async function idleCpuMs(pid) {
  const before = cpuSeconds(pid);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  return ((cpuSeconds(pid) - before) * 1_000_000) / IDLE_MS;
}

/**
 * Runs the load generator to its end: what it says at the end, and what `probe` returned when it said `connected`,
 * `measuring` and `measured`.
 */
export async function runLoad(args, probe) {
  const child = onCore(LOAD_CORE, join(root, "target", "release", "headgate-bench"), args);
  const seen = {};
  let balance = {};
  createInterface(child.stdout).on("line", (line) => {
    if (line.startsWith("{")) balance = JSON.parse(line);
    else seen[line] = { time: performance.now() / 1000, ...probe() };
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error("the load generator failed");
  return { balance, seen };
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** nginx-rtmp that pushes every stream to `sinkPort`. */
export async function startNginx(sinkPort) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const port = await freePort();
  writeFileSync(
    join(folder, "nginx.conf"),
    `load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
     daemon off; master_process off; worker_processes 1; error_log ${folder}/error.log crit; pid ${folder}/pid;
     events { worker_connections 4096; }
     rtmp { access_log off; server { listen 127.0.0.1:${port}; chunk_size 65536;
       application live { live on; push rtmp://127.0.0.1:${sinkPort}/live; } } }`,
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

/** Headgate with one media worker that pushes every stream to `sinkPort`. */
export async function startHeadgate(sinkPort, n) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const key = `bench-${"k".repeat(30)}`;
  const child = onCore(SERVER_CORE, process.execPath, [join(root, "scripts", "headgate.mjs"), "serve"], {
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
      HEADGATE_DRAIN_S: "0",
      HEADGATE_LOG_LEVEL: "warn",
      HEADGATE_BOOTSTRAP_API_KEY: key,
      HEADGATE_UPSTREAM_PUSH: `rtmp://127.0.0.1:${sinkPort}/live/{name}`,
    },
  });
  const [line] = await once(createInterface(child.stdout), "line");
  const { http, rtmp } = JSON.parse(line);
  const names = [];
  while (names.length < n) {
    const answer = await fetch(`${http}/stream`, { method: "POST", headers: { "x-service-apikey": key } });
    // The API's own limit per key; nothing is measured yet.
    if (answer.status === 429) await new Promise((resolve) => setTimeout(resolve, 200));
    else names.push((await answer.json()).ingest.rtmp.streamname);
  }
  return {
    name: "headgate",
    pid: child.pid,
    target: new URL(rtmp).host,
    http: new URL(http).host,
    streamUrl: new URL("/live", rtmp).href,
    names: () => names,
    stop: () => end(child, folder),
  };
}

const numbered = (n) => Array.from({ length: n }, (_, i) => `bench${i}`);

async function end(child, folder) {
  child.kill("SIGTERM");
  await once(child, "exit");
  rmSync(folder, { recursive: true, force: true });
}
