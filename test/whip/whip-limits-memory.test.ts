// The WHIP limits per address remember ten thousand addresses: the most recently seen ones.
import { expect, test } from "vitest";
import { createWhipLimits } from "../../ts/publish/whip/whip-limits.ts";

const REMEMBERED = 10_000;
/** Burst of requests of an address, at one request a second. */
const BURST = 3;

const settings = { requestsPerSecond: 1, offersPerSecond: 0, halfOpenPerAddress: 0, halfOpen: 0 };
const other = (at: number) => `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;

test("an address that is seen again and again is not evicted by others", () => {
  const limits = createWhipLimits({ settings, clock: { now: () => 0 }, isConnected: () => false });
  const ask = (address: string) => limits.request(address, "session");
  for (let at = 0; at < BURST; at += 1) expect(ask("203.0.113.7")).toBeNull();
  for (let at = 0; at < REMEMBERED; at += 1) {
    ask(other(at));
    if (at % 1_000 === 0) expect(ask("203.0.113.7")).toMatchObject({ of: "address" });
  }
  expect(ask("203.0.113.7")).toMatchObject({ of: "address" });
  // The first of the others was: its burst starts again.
  for (let at = 0; at < BURST; at += 1) expect(ask(other(0))).toBeNull();
});

test("sessions that have connected make room, even when the clock was set back meanwhile", () => {
  let now = 3_600_000;
  let isConnected = false;
  const half = { ...settings, requestsPerSecond: 0, halfOpen: 2 };
  const limits = createWhipLimits({ settings: half, clock: { now: () => now }, isConnected: () => isConnected });
  for (const clientId of [1, 2]) {
    const place = limits.halfOpen("203.0.113.7");
    if ("opened" in place) place.opened(clientId);
  }
  expect(limits.halfOpen("203.0.113.7")).toMatchObject({ of: "all" });
  isConnected = true;
  now = 0;
  expect(limits.halfOpen("203.0.113.7")).not.toHaveProperty("of");
});
