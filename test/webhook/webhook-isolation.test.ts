// Short forms of the isolation of customers (W25). The long ones print their figures: `npm run bench --
// webhook isolation`, `tenants`, and `npm run bench -- queues`. They run the build in dist.
import { expect, test } from "vitest";
import { outage } from "../../bench/_outage.mjs";
import { isolation } from "../../bench/_webhook-isolation.mjs";
import { tenants } from "../../bench/_webhook-tenants.mjs";
import { inWholeRun } from "../support/whole-run.ts";

test("a customer that hangs does not delay another's publishes", async () => {
  // A second of the hanging customer's publishes has its 100 calls in flight, with hardly any work for the machine.
  const { alone, beside } = await isolation(4, 1, { ofA: 120, secondsOfA: 1, ofB: 20, aheadMs: 1_500 });
  expect(beside.length).toBe(alone.length);
  // Had these publishes waited for those calls, it would have been for what is left of their 5 s: the first half of them
  // for 2.5 s and more. The second half would find its breaker open, which fails `isolation`.
  const late = beside.filter((tookMs) => tookMs > 2_400).length;
  expect(late / beside.length).toBeLessThan(0.25);
}, 120_000);

inWholeRun(
  "the events of an outage are all delivered, while nobody else's publish is denied",
  async () => {
    const { alone, beside, denied, left } = await outage(150, 3);
    expect([denied, left]).toEqual([0, 0]);
    // It was seconds when they waited behind deliveries.
    const sorted = (times: readonly number[]) => [...times].sort((a, b) => a - b);
    const [apart, during] = [alone, beside].map((times) => sorted(times)[Math.floor(times.length * 0.9)] ?? 0);
    expect(during).toBeLessThan(1_000 + 4 * (apart ?? 0));
  },
  120_000,
);

inWholeRun(
  "organisations whose web or name servers hang do not delay another's publishes",
  async () => {
    const { alone, hanging } = await tenants(2, 1, 60, 12);
    expect(hanging.length).toBe(alone.length);
    const late = hanging.filter((tookMs) => tookMs > 4_000).length;
    expect(late / hanging.length).toBeLessThan(0.1);
  },
  120_000,
);
