// The lock that keeps a phone's screen on, in Node with a browser's lock in memory: whatever overlaps, none is left over.
// Checked with the types of a browser, by tsconfig.browser.json.
import { expect, test } from "vitest";
import { createScreenLock } from "../../../ts/broadcast/wake-lock.ts";
import { held } from "../../support/held.ts";

test("a broadcast that is cancelled and started again before the browser answers leaves no lock", async () => {
  const { promise, release } = held();
  const locks: { released: boolean }[] = [];
  const wakeLock = {
    async request() {
      await promise;
      const lock = {
        released: false,
        async release() {
          lock.released = true;
        },
      };
      locks.push(lock);
      return lock;
    },
  };
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const screen = createScreenLock(page as unknown as Document, wakeLock as unknown as WakeLock);
  screen.hold();
  screen.release();
  screen.hold();
  release();
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(locks.map(({ released }) => released)).toEqual([false, true]);
  screen.release();
  expect(locks.map(({ released }) => released)).toEqual([true, true]);
});
