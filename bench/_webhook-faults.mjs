// The kinds of faults of a customer's endpoint (R8): only 200 admits, every decision comes by the deadline, event loop
// and heap are not affected. The endpoints run in a separate process, because their stalls must not count as
// ours.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { endingWithUs } from "./_ending.mjs";
import { openPublishing } from "./_publishing.mjs";
import { certificate, percentile } from "./_webhook.mjs";

/** Deadline of a decision, and its allowed excess, ms.
 *  @type {number} */
export const DEADLINE_MS = 1_000;
/** @type {number} */
export const SLACK_MS = 100;
const TOGETHER = 20;
const LAG_GOAL_MS = 20;
/** @type {number} */
export const GROWTH_GOAL_MB = 10;
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

/** @type {(times?: number) => Promise<Record<string, { admitted: number; slowest: number; lagMs: number; stallMs: number; grown: number }>>} */
export async function faults(times = 200) {
  const endpoints = await startFaults(certificate);
  const gateway = await openPublishing({ deadlineMs: DEADLINE_MS });
  let failed = 0;
  let missed = 0;
  const found = {};
  for (const [index, [kind, url]] of Object.entries(endpoints.urls).entries()) {
    const id = `org${index}`;
    await gateway.addOrganisation(id, url, TOGETHER);
    collectGarbage();
    const heap = process.memoryUsage().heapUsed;
    const lag = monitorEventLoopDelay({ resolution: 1 });
    lag.enable();
    const answers = [];
    for (let done = 0; done < times; done += TOGETHER) {
      const names = Array.from({ length: Math.min(TOGETHER, times - done) }, (_, at) => `${id}-${at}`);
      const batch = await Promise.all(names.map((name) => gateway.request(name)));
      for (const { allowed, clientId } of batch) if (allowed) gateway.end(clientId);
      answers.push(...batch);
    }
    lag.disable();
    collectGarbage();
    const grown = (process.memoryUsage().heapUsed - heap) / 1e6;
    const admitted = answers.filter(({ allowed }) => allowed).length;
    const slowest = percentile(
      answers.map(({ tookMs }) => tookMs),
      1,
    );
    const late = answers.filter(({ tookMs }) => tookMs > DEADLINE_MS + SLACK_MS).length;
    const expected = kind === "ok" ? times : 0;
    if (admitted !== expected || late > 0) failed += 1;
    const lagMs = lag.percentile(99) / 1e6;
    if (lagMs > LAG_GOAL_MS || grown > GROWTH_GOAL_MB) missed += 1;
    found[kind] = { admitted, slowest, lagMs, stallMs: lag.max / 1e6, grown };
    console.log(
      `  ${kind.padEnd(16)} ${times} requested, ${admitted} admitted, slowest ${slowest.toFixed(0)} ms, late ${late}, ` +
        `loop lag p99 ${lagMs.toFixed(1)} ms, heap ${grown >= 0 ? "+" : ""}${grown.toFixed(1)} MB`,
    );
  }
  console.log(`  deadline ${DEADLINE_MS} ms; ${failed === 0 ? "all as required" : `FAILED: ${failed} kinds`}`);
  console.log(`  goals: lag p99 ${LAG_GOAL_MS} ms, heap ${GROWTH_GOAL_MB} MB; missed by ${missed} kinds`);
  if (failed > 0) process.exitCode = 1;
  await gateway.close();
  endpoints.stop();
  return found;
}

/** Starts the endpoints; `urls` by kind of fault. `certificate`: PEM that the gateway trusts. */
export async function startFaults({ cert, key }) {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL("./_faulty-customer.mjs", import.meta.url)), cert, key],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  endingWithUs(child);
  const [line] = await once(createInterface(child.stdout), "line");
  return { urls: JSON.parse(line), stop: () => child.kill("SIGKILL") };
}
