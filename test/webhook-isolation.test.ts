// Short forms of the isolation of customers (W25). The long ones print their figures: `npm run bench --
// webhook isolation`, `tenants`. They run the build in dist.
import { expect, test } from "vitest";
import { isolation } from "../scripts/bench/_webhook-isolation.mjs";
import { tenants } from "../scripts/bench/_webhook-tenants.mjs";
import { inWholeRun } from "./support/whole-run.ts";

test("a customer that hangs does not delay another's publishes", async () => {
  const { alone, beside } = await isolation(2, 1);
  expect(beside.length).toBe(alone.length);
  // Had they waited for the other customer, they would have waited for its deadline of 5 s.
  const late = beside.filter((tookMs) => tookMs > 4_000).length;
  expect(late / beside.length).toBeLessThan(0.1);
}, 120_000);

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
