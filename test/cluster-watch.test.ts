// Which nodes are taken for dead, by what is read of them and when.
import { expect, test } from "vitest";
import { LEASE_MS, Watch } from "../ts/cluster/watch.ts";

const node = (beats: number, epoch = 1) => ({ epoch, beats });

/** Reads every two seconds from `from` on; what was dead at the last reading. */
function read(watch: Watch, from: number, forMs: number, beats: (at: number) => number) {
  let dead: readonly { epoch: number }[] = [];
  for (let at = from; at <= from + forMs; at += 2_000) dead = watch.read([node(beats(at))], at);
  return dead.map(({ epoch }) => epoch);
}

test("a node that gives no sign of life for a lease is dead, and not a moment earlier", () => {
  const watch = new Watch();
  expect(read(watch, 0, LEASE_MS - 2_000, () => 7)).toEqual([]);
  expect(read(watch, LEASE_MS, 0, () => 7)).toEqual([1]);
});

test("a node that beats is alive, however slowly, and whatever the clocks say", () => {
  expect(read(new Watch(), 0, 60_000, (at) => Math.floor(at / (LEASE_MS - 2_000)))).toEqual([]);
});

test("whoever could not read the store for a while gives everybody a whole lease again", () => {
  const watch = new Watch();
  read(watch, 0, LEASE_MS - 2_000, () => 7);
  const back = LEASE_MS - 2_000 + 6_000; // the store, or this node, was away for longer than a lease
  expect(read(watch, back, LEASE_MS - 2_000, () => 7)).toEqual([]);
  expect(read(watch, back + LEASE_MS, 0, () => 7)).toEqual([1]);
});

test("a node that was seen for the first time a moment ago has a whole lease", () => {
  const watch = new Watch();
  read(watch, 0, LEASE_MS, () => 7);
  expect(watch.read([node(3, 2)], LEASE_MS + 2_000)).toEqual([]);
});
