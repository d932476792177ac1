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
      HEADGATE_MEDIA_WORKERS: "1",
      HEADGATE_DRAIN_S: "0",
      HEADGATE_LOG_LEVEL: "warn",
      HEADGATE_BOOTSTRAP_API_KEY: key,
      HEADGATE_UPSTREAM_PUSH: `rtmp://127.0.0.1:${sinkPort}/live/{name}`,
    },
  });
  const [line] = await once(createInterface(child.stdout), "line");
  const { http, rtmp } = JSON.parse(line);
  const names = [];
  for (let i = 0; i < n; i += 1) {
    const answer = await fetch(`${http}/stream`, { method: "POST", headers: { "x-service-apikey": key } });
    names.push((await answer.json()).ingest.rtmp.streamname);
  }
  return {
    name: "headgate",
    pid: child.pid,
    target: new URL(rtmp).host,
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
