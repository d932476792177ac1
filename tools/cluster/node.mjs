// One node of the cluster on loopback: a process of the service with its own data directory, on free ports.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../../scripts/build.mjs";

/** How long a stopping node may take before it is killed, ms: what it still has to deliver to customers takes 10 s
 *  at most. */
const STOP_LIMIT_MS = 20_000;
const KEY_FILE = "headgate.key";

/** Starts the node at a place, counted from 1, and resolves when it is ready; rejects if it ends before that.
 *  `checkout`: what it runs; `settings`: further ones, by their environment names. */
export async function startNode(
  place,
  { folder, databaseUrl, apiKey, password, checkout = root, settings = {}, log = console.error },
) {
  const name = `node-${place}`;
  const dataDir = join(folder, name);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const first = join(folder, "node-1", KEY_FILE);
  // All nodes decrypt the secrets in the store with the same key.
  if (place > 1 && !existsSync(join(dataDir, KEY_FILE))) copyFileSync(first, join(dataDir, KEY_FILE));
  const given = Object.entries(process.env).filter(([key]) => !key.startsWith("HEADGATE_"));
  const env = {
    ...Object.fromEntries(given),
    HEADGATE_DATA_DIR: dataDir,
    HEADGATE_DATABASE_URL: databaseUrl,
    HEADGATE_NODE_NAME: name,
    HEADGATE_BOOTSTRAP_API_KEY: apiKey,
    HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: password,
    // All connections come from this machine.
    HEADGATE_TRUSTED_PROXIES: "127.0.0.1",
    HEADGATE_LIMITS_RTMP_CONNECTIONS_PER_ADDRESS: "0",
    HEADGATE_MEDIA_WORKERS: "1",
    HEADGATE_MEDIA_AUDIO_WORKERS: "1",
    HEADGATE_DRAIN_S: "0",
    HEADGATE_DEV: "1",
    HEADGATE_LOG_FORMAT: "pretty",
    ...Object.fromEntries(
      ["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((port) => [`HEADGATE_${port}_HOST`, "127.0.0.1"]),
    ),
    ...Object.fromEntries(["HTTP", "RTMP", "MEDIA", "METRICS", "NODE"].map((port) => [`HEADGATE_${port}_PORT`, "0"])),
    ...settings,
  };
  const child = spawn(process.execPath, [join(checkout, "scripts", "headgate.mjs"), "serve"], {
    env,
    cwd: checkout,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = once(child, "exit").then(([code, signal]) => code ?? signal);
  createInterface({ input: child.stderr }).on("line", (line) => log(`${name} | ${line}`));
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    exit.then((code) => [code]),
  ]);
  if (typeof line !== "string" || !line.startsWith("{"))
    throw new Error(`${name} does not start: it ended with ${line}`);
  const { http, rtmp, metrics } = JSON.parse(line);
  return {
    ...{ name, pid: child.pid, http, rtmp, metrics, exit },
    kill: () => child.kill("SIGKILL"),
    async stop() {
      child.kill("SIGTERM");
      child.kill("SIGCONT"); // in case it was paused
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_LIMIT_MS);
      await exit;
      clearTimeout(late);
    },
  };
}
