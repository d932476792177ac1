// Which nodes are considered dead, depending on what is read of them and when.
import { expect, test } from "vitest";
import { LEASE_MS, Watch } from "../../ts/cluster/watch.ts";

const node = (beats: number, epoch = 1) => ({ epoch, beats });

/** Reads every two seconds starting at `from`; returns the nodes that were dead at the last reading. */
function read(watch: Watch, from: number, forMs: number, beats: (at: number) => number) {
  let dead: readonly { epoch: number }[] = [];
  for (let at = from; at <= from + forMs; at += 2_000) dead = watch.read([node(beats(at))], at);
  return dead.map(({ epoch }) => epoch);
}

test("a node without a heartbeat for a lease is dead, and not a moment earlier", () => {
  const watch = new Watch();
  expect(read(watch, 0, LEASE_MS - 2_000, () => 7)).toEqual([]);
  expect(read(watch, LEASE_MS, 0, () => 7)).toEqual([1]);
});

test("a node with heartbeats is alive, however slow they are, and whatever the clocks say", () => {
  expect(read(new Watch(), 0, 60_000, (at) => Math.floor(at / (LEASE_MS - 2_000)))).toEqual([]);
});

test("a reader that could not read the store for a while grants every node a whole lease again", () => {
  const watch = new Watch();
  read(watch, 0, LEASE_MS - 2_000, () => 7);
  const back = LEASE_MS - 2_000 + 6_000; // the store, or this node, was unreachable for longer than a lease
  expect(read(watch, back, LEASE_MS - 2_000, () => 7)).toEqual([]);
  expect(read(watch, back + LEASE_MS, 0, () => 7)).toEqual([1]);
});

test("a node that was first seen a moment ago has a whole lease", () => {
  const watch = new Watch();
  read(watch, 0, LEASE_MS, () => 7);
  expect(watch.read([node(3, 2)], LEASE_MS + 2_000)).toEqual([]);
});

test("the end of a lease is known before, and moves with each sign of life", () => {
  const watch = new Watch();
  expect(watch.nextEndAfter(0)).toBe(Number.POSITIVE_INFINITY);
  watch.read([node(7), node(3, 2)], 0);
  watch.read([node(8), node(3, 2)], 2_000);
  expect(watch.nextEndAfter(2_000)).toBe(LEASE_MS); // of node 2
  expect(watch.nextEndAfter(LEASE_MS)).toBe(LEASE_MS + 2_000);
});
