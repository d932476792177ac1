// The short form of what nodes and publishes cost PostgreSQL. The long one prints its figures: `npm run bench
// -- nodes`. It runs the build in dist.
import { expect, test } from "vitest";
import { extrapolate, measureNodes } from "../../../bench/_nodes.mjs";

const cost = (statements: number) => ({ statements, rows: statements, walBytes: 100 * statements, ms: statements });

test("every publish and every node costs the store a bounded number of statements", async () => {
  // Counters are written every ten seconds.
  const { costs, busiest } = await measureNodes({ nodes: 2, publishes: 10, seconds: 12, updateS: 5 });
  // Each bound is about three times the measured value: one more statement is acceptable, one for each stream
  // is not.
  const bounds = { node: 8, start: 35, second: 3, end: 45 };
  for (const [of, bound] of Object.entries(bounds)) {
    const { statements } = costs[of as keyof typeof costs];
    expect(statements, of).toBeGreaterThan(0);
    expect(statements, of).toBeLessThan(bound);
  }
  expect(busiest.map(({ text }) => text).join("\n")).toContain('update "node" set "beats"');
}, 180_000);

test("in the extrapolation the node rows that are read grow with the square of the number of nodes", () => {
  const measured = {
    ...{ nodes: 2, nodeRowBytes: 300 },
    costs: { node: cost(2), start: cost(10), second: cost(0.5), end: cost(10) },
  };
  const at = { nodes: 10, streams: 1_000, lastingS: 100 };
  expect(extrapolate(measured, at)).toEqual({
    statements: 10 * 2 + 1_000 * (0.5 + 20 / 100),
    rows: 10 * 2 - 20 + 100 + 1_000 * (0.5 + 20 / 100),
    nodeRows: 100,
    nodeRowBytes: 30_000,
    walBytes: 100 * (10 * 2 + 1_000 * (0.5 + 20 / 100)),
    cores: (10 * 2 + 1_000 * (0.5 + 20 / 100)) / 1_000,
    connections: 200,
  });
});
