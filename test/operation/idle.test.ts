// What a service does while nobody uses it: laptops, small machines and hosts of many services pay for each wake-up.
import { readdirSync, readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../support/child.ts";
import { startHeadgate } from "../support/headgate.ts";
import { pause } from "../support/pause.ts";

const MEASURED_S = 3;
/** Where the event loop was sampled all the time there were 150 a second; docs/measurements.md has the figures. */
const WAKE_UPS_LIMIT = 40;

/** How often the threads of a process have waited for something so far. */
function waits(pid: number): number {
  const each = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
    return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  });
  return each.reduce((sum, one) => sum + one, 0);
}

test("an idle service sleeps, and its event loop is reported as prompt", async () => {
  const headgate = await startHeadgate();
  onTestFinished(async () => void (await headgate.stop()));
  const pid = headgate.process.pid ?? 0;
  const perSecond = await until("the service sleeps", async () => {
    const before = waits(pid);
    await pause(MEASURED_S * 1_000); // wake-ups are counted over them
    const found = (waits(pid) - before) / MEASURED_S;
    return found < WAKE_UPS_LIMIT && found;
  });
  console.log(`idle: ${perSecond.toFixed(1)} wake-ups a second`);
  const metrics = await (await fetch(`${headgate.metrics}/metrics`)).text();
  for (const name of ["", "min_", "max_", "mean_", "stddev_", "p50_", "p90_", "p99_"]) {
    expect(metrics).toMatch(new RegExp(`^nodejs_eventloop_lag_${name}seconds [0-9.e-]+$`, "m"));
  }
});
