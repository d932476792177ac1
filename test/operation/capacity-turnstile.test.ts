// A crowd that arrives at the same time passes in order of arrival, and other work runs in between.
import { expect, test } from "vitest";
import { Turnstile } from "../../ts/capacity/turnstile.ts";

/** Resolves when the next one may pass. */
const pass = (turnstile: Turnstile) => new Promise<void>((begin) => turnstile.pass(begin));
const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

test("a single arrival passes immediately", async () => {
  const turnstile = new Turnstile(1, { levels: 3 });
  for (let at = 0; at < 3; at += 1) {
    await pass(turnstile);
    expect(turnstile.waiting).toBe(0);
    await turnOfTheLoop();
    await turnOfTheLoop();
  }
});

test("a crowd passes one by one per turn of the event loop, in order of arrival", async () => {
  const turnstile = new Turnstile(1, { levels: 3 });
  const through: number[] = [];
  const passes = Array.from({ length: 101 }, (_, at) => pass(turnstile).then(() => through.push(at)));
  let turns = 0;
  for (let before = 0; through.length < 101; turns += 1) {
    await turnOfTheLoop();
    expect(through.length - before).toBeLessThanOrEqual(2);
    before = through.length;
  }
  await Promise.all(passes);
  expect(turns).toBeGreaterThan(50);
  expect(through).toEqual(Array.from({ length: 101 }, (_, at) => at));
  expect(turnstile.waiting).toBe(0);
});

test("with a pause a single arrival passes immediately, and a crowd one by one at that interval", async () => {
  const turnstile = new Turnstile(1, { levels: 3, pauseMs: 20 });
  const began = performance.now();
  const through = await Promise.all(
    Array.from({ length: 4 }, () => pass(turnstile).then(() => performance.now() - began)),
  );
  expect(through).toEqual(through.toSorted((a, b) => a - b));
  // A timer may be a millisecond early by this clock.
  expect(through[3]).toBeGreaterThanOrEqual(3 * 19);
  expect(turnstile.waiting).toBe(0);
});
