// kill -9 of the whole service while streams are live (R7): each of them gets one publish_done from the next start,
// with the bytes that were last persisted, and the service is ready again immediately.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../scripts/build.mjs";
import { endingWithUs } from "./_ending.mjs";
import { faultsOf, startRecordingCustomer } from "./_recording-customer.mjs";
import { certificate, percentile, wait } from "./_webhook.mjs";

const API_KEY = `kills-${"k".repeat(30)}`;
const STREAMS = 3;
const LIVE_LIMIT_MS = 30_000;

/** @type {(count?: number) => Promise<{ publishes: number; done: number; wrong: string[]; settingsLost: number; readyMs: number[] }>} */
export async function kills(count = 100) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-kills-"));
  writeFileSync(join(folder, "ca.pem"), certificate.cert);
  const customer = await startRecordingCustomer();
  const readyMs = [];
  let settingsLost = 0;
  let service = await startService(folder);
  const names = [];
  await service.call("PUT", "/organisation/webhook", { webhook: customer.url });
  for (let at = 0; at < STREAMS; at += 1) {
    names.push((await service.call("POST", "/stream")).ingest.rtmp.streamname);
  }
  for (let at = 0; at < count; at += 1) {
    const before = customer.events.size;
    const encoders = names.map((name) => broadcast(`${service.rtmp}/${name}?n=${at}`));
    await until(() => customer.events.size >= before + STREAMS);
    // Anywhere in the life of the publishes: waiting for the decision, just accepted, or live for a while.
    await wait(Math.random() * 500);
    const url = `${customer.url}?n=${at}`;
    await service.call("PUT", "/organisation/webhook", { webhook: url });
    service.child.kill("SIGKILL");
    await once(service.child, "close");
    for (const encoder of encoders) encoder.kill("SIGKILL");
    const startedAt = performance.now();
    service = await startService(folder);
    readyMs.push(performance.now() - startedAt);
    if ((await service.call("GET", "/organisation")).webhook !== url) settingsLost += 1;
    await until(() => [...customer.events.values()].every((all) => all.some(({ call }) => call === "publish_done")));
  }
  // Every publish that the customer accepted must end.
  const sent = new Map([...customer.events.keys()].map((clientId) => [clientId, null]));
  const { done, repeated, wrong } = faultsOf(customer.events, sent);
  console.log(
    `  ${count} kills, ${sent.size} publishes live or being decided, ${settingsLost} acknowledged settings lost`,
  );
  console.log(`  ${done} publish_done delivered, ${repeated} repetitions, ${wrong.length} wrong`);
  const [p50, most] = [0.5, 1].map((p) => Math.round(percentile(readyMs, p)));
  console.log(`  ready again after p50 ${p50} ms, at most ${most} ms, Node's own start included`);
  for (const fault of wrong.slice(0, 10)) console.log(`    ${fault}`);
  service.child.kill("SIGKILL");
  await customer.stop();
  rmSync(folder, { recursive: true, force: true });
  return { publishes: sent.size, done, wrong, settingsLost, readyMs };
}

async function startService(folder) {
  const child = spawn(process.execPath, [join(root, "scripts", "headgate.mjs"), "serve"], {
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      PATH: process.env.PATH,
      HEADGATE_DATA_DIR: folder,
      HEADGATE_HTTP_HOST: "127.0.0.1",
      HEADGATE_HTTP_PORT: "0",
      HEADGATE_RTMP_HOST: "127.0.0.1",
      HEADGATE_RTMP_PORT: "0",
      HEADGATE_METRICS_PORT: "0",
      HEADGATE_MEDIA_HOST: "127.0.0.1",
      HEADGATE_MEDIA_PORT: "0",
      HEADGATE_BOOTSTRAP_API_KEY: API_KEY,
      HEADGATE_MEDIA_WORKERS: "1",
      HEADGATE_DEV: "1",
      HEADGATE_WEBHOOK_CA: join(folder, "ca.pem"),
    },
  });
  endingWithUs(child);
  const ended = once(child, "close").then(([code]) => {
    throw new Error(`headgate did not start (${code})`);
  });
  const [line] = await Promise.race([once(createInterface(child.stdout), "line"), ended]);
  ended.catch(() => {}); // from here on it is killed intentionally
  const { http, rtmp } = JSON.parse(line);
  return {
    child,
    rtmp,
    async call(method, path, body) {
      const response = await fetch(http + path, {
        method,
        headers: { "x-service-apikey": API_KEY },
        ...(body && { body: JSON.stringify(body) }),
      });
      if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status}`);
      return await response.json();
    },
  };
}

/** Publishes small video frames in real time until it is killed. */
function broadcast(url) {
  const input = ["-re", "-f", "lavfi", "-i", "testsrc=size=160x90:rate=10"];
  const output = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10", "-f", "flv", url];
  const child = spawn("ffmpeg", ["-nostdin", "-loglevel", "error", ...input, ...output], { stdio: "ignore" });
  endingWithUs(child);
  return child;
}

async function until(look) {
  for (let waited = 0; waited < LIVE_LIMIT_MS; waited += 10) {
    if (look()) return;
    await wait(10);
  }
  throw new Error("timed out");
}
