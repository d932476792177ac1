// The push matrix in its short form: every kind of upstream and every fault at least once. The whole of it:
// `npm run matrix -- push`.
import { expect, test } from "vitest";
import { type Fault, faults, runPushCell } from "../../matrix/push-cell.ts";
import { upstreams } from "../../matrix/upstreams.ts";

const SECONDS = 6;
const cells: readonly [upstream: string, fault: Fault][] = [
  ["nginx-rtmp", "drop"],
  ["Node-Media-Server 4", "start"],
  ["Node-Media-Server 4", "refuse"],
  ["ffmpeg -listen 1", "restart"],
  ["Headgate", "stall"],
];

test("every upstream and every fault has a cell here", () => {
  expect(new Set(cells.map(([upstream]) => upstream))).toEqual(new Set(upstreams.map(({ name }) => name)));
  expect(new Set(cells.map(([, fault]) => fault))).toEqual(new Set(faults));
});

// Cells wait most of their time: running them concurrently costs no more.
test.concurrent.for(cells)("%s: %s", { timeout: 180_000 }, async ([name, fault]) => {
  const upstream = upstreams.find((each) => each.name === name);
  if (!upstream) throw new Error("no such upstream");
  const { complaints } = await runPushCell(upstream, fault, SECONDS);
  expect(complaints).toEqual([]);
});
