// The short form of random publishes over nodes that are killed and paused: `npm run bench -- oracle`. It
// runs the build in dist.
import { expect, test } from "vitest";
import { runOracle } from "../../../bench/_cluster-oracle.mjs";

test("whatever is killed or paused, no name is live twice, and every accepted publish ends once", async () => {
  const found = await runOracle({ nodes: 3, names: 20, publishes: 200, faults: 2 });
  expect(found).toMatchObject({ twice: [], wrong: [], left: 0 });
  expect(found.allowed).toBeGreaterThan(20);
  expect(found.done).toBe(found.ended);
}, 240_000);
