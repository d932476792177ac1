// The short form of how signs of life and ends fare when a node dies beside others that have much to do. The long one
// prints its figures: `npm run bench -- deaths`. It runs the build in dist.
import { expect, test } from "vitest";
import { measureDeath } from "../../../bench/_deaths.mjs";

test("when a node dies, the others tell its ends once each, share that work, and keep sending heartbeats", async () => {
  const publishes = 300;
  const death = await measureDeath({ publishes, survivors: 2, pulls: 300, delayMs: 1 });
  const { told, events, recordedMs, ends, gapMs, lost, pulledBytes } = death;
  console.log(JSON.stringify(death));
  expect({ told, events, lost }).toEqual({ told: publishes, events: publishes, lost: 0 });
  expect(recordedMs).toBeLessThan(15_000);
  expect(gapMs).toBeLessThan(3_500); // and some slack for a busy machine
  // A fair split: none has ended more than twice as many as another.
  expect(ends).toHaveLength(2);
  expect(Math.max(...ends)).toBeLessThan(2 * Math.min(...ends));
  expect(pulledBytes).toBeGreaterThan(0);
}, 180_000);
