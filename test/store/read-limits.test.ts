// An organisation's share of the store for reads.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TooManyReads } from "../../ts/errors.ts";
import {
  createReadLimits,
  READ_BURST_MS,
  READ_SHARE_MS,
  READ_WAIT_MS,
  READS_AT_ONCE,
  READS_WAITING,
  type ReadLimits,
} from "../../ts/organisation/reads/read-limits.ts";
import { chargeStatement } from "../../ts/store/statements/reading.ts";

let limits: ReadLimits;
beforeEach(() => {
  vi.useFakeTimers();
  limits = createReadLimits({ now: () => Date.now() });
});
afterEach(() => vi.useRealTimers());

const spend = (ms: number) => async () => chargeStatement({ queryDurationMillis: ms } as never);

function held(organisation = "a") {
  let end: () => void = () => {};
  let isRunning = false;
  const done = limits.run(organisation, () => {
    isRunning = true;
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  done.catch(() => {});
  return { done, end: () => end(), isRunning: () => isRunning };
}

test("so many run at the same time, the next ones wait for their turn in order", async () => {
  const reads = Array.from({ length: READS_AT_ONCE + 2 }, () => held());
  await vi.advanceTimersByTimeAsync(0);
  expect(reads.map(({ isRunning }) => isRunning())).toEqual([...Array(READS_AT_ONCE).fill(true), false, false]);
  reads[0]?.end();
  await vi.advanceTimersByTimeAsync(0);
  expect(reads.map(({ isRunning }) => isRunning())).toEqual([...Array(READS_AT_ONCE + 1).fill(true), false]);
});

test("another organisation does not wait", async () => {
  for (let count = 0; count < READS_AT_ONCE + READS_WAITING; count += 1) held();
  expect(await limits.run("b", async () => "b")).toBe("b");
});

test("who waits too long is refused, and who comes when too many wait at once", async () => {
  for (let count = 0; count < READS_AT_ONCE; count += 1) held();
  const waiting = held();
  for (let count = 1; count < READS_WAITING; count += 1) held();
  await expect(limits.run("a", async () => 1)).rejects.toThrow(TooManyReads);
  await vi.advanceTimersByTimeAsync(READ_WAIT_MS);
  await expect(waiting.done).rejects.toThrow(TooManyReads);
});

test("statements use up the share, which refills evenly, and the refusal says when", async () => {
  await limits.run("a", spend(READ_BURST_MS + 5 * READ_SHARE_MS));
  const refused = limits.run("a", async () => 1).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(READ_WAIT_MS);
  expect(await refused).toMatchObject({ code: "too_many_reads", retryAfterS: 4 });
  const late = limits.run("a", async () => 2, 60_000);
  await vi.advanceTimersByTimeAsync(3_100);
  expect(await late).toBe(2);
});

test("a read that fails gives its place back", async () => {
  for (let count = 0; count < 3 * READS_AT_ONCE; count += 1) {
    await expect(limits.run("a", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  }
  expect(await limits.run("a", async () => 1)).toBe(1);
});
