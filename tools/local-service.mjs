// A service on this machine for a tool: its own process and data directory, free ports, and an API key.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../scripts/build.mjs";

/** `password`: of the person `admin`; `drainS`: how long a drain may take, seconds. Its data are removed once it has ended. */
export async function startLocalService({ password, drainS }) {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-tool-"));
  const key = `tool-${randomBytes(20).toString("hex")}`;
  const child = spawn(process.execPath, ["scripts/headgate.mjs", "serve"], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      PATH: process.env.PATH,
      HEADGATE_DATA_DIR: dataDir,
      HEADGATE_HTTP_HOST: "127.0.0.1",
      HEADGATE_HTTP_PORT: "0",
      HEADGATE_RTMP_HOST: "127.0.0.1",
      HEADGATE_RTMP_PORT: "0",
      HEADGATE_METRICS_PORT: "0",
      HEADGATE_MEDIA_HOST: "127.0.0.1",
      HEADGATE_MEDIA_PORT: "0",
      HEADGATE_BOOTSTRAP_API_KEY: key,
      HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: password,
      HEADGATE_DRAIN_S: String(drainS),
      HEADGATE_DEV: "1",
    },
  });
  child.once("exit", () => rmSync(dataDir, { recursive: true, force: true }));
  const line = await new Promise((resolve, reject) => {
    createInterface(child.stdout).once("line", resolve);
    child.once("exit", () => reject(new Error("the service did not start")));
  });
  const { http, rtmp } = JSON.parse(line);
  return {
    dataDir,
    http,
    rtmp,
    async call(method, path, body) {
      const response = await fetch(http + path, {
        method,
        headers: { "x-service-apikey": key, "content-type": "application/json", connection: "close" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      return await response.json();
    },
    drain: () => child.kill("SIGTERM"),
    stop: () => child.kill("SIGKILL"),
  };
}
