// A scrape while one of its sources fails.
import { expect, test } from "vitest";
import { createMetrics } from "../../ts/metrics.ts";

const live = () => ({ publishes: { rtmp: 2, whip: 0 }, players: 3, pulls: 0, upstreams: {}, bytesIn: 0, bytesOut: 0 });
const load = () => ({ inFlight: 1, waiting: 0, open: [] });

test.each([
  ["is down", () => Promise.reject(new Error("connection refused"))],
  ["does not answer", () => new Promise<never>(() => {})],
])("a store that %s makes only the store's own metrics unknown in a scrape", async (_, outbox) => {
  const metrics = createMetrics();
  metrics.watchPublishing({ load, outbox, live });
  const text = await metrics.registry.metrics();
  expect(text).toContain("headgate_players 3");
  expect(text).toMatch(/^headgate_outbox_events nan$/im);
});
