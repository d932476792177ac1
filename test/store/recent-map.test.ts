// What is kept in memory for a while is bounded: the oldest is forgotten, and a use is written once a minute.
import { expect, test } from "vitest";
import { RecentMap } from "../../ts/limits/recent-map.ts";
import { LAST_USE_STEP_MS, LastUses } from "../../ts/store/statements/last-uses.ts";

test("a full map forgets what was set longest ago", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1).set("b", 2).set("a", 3).set("c", 4);
  expect([...map]).toEqual([
    ["a", 3],
    ["c", 4],
  ]);
});

test("a use is written once a minute, for each id by itself", () => {
  const uses = new LastUses();
  const at = 1_000_000;
  expect([uses.take("a", at), uses.take("a", at + LAST_USE_STEP_MS - 1), uses.take("b", at)]).toEqual([
    true,
    false,
    true,
  ]);
  expect(uses.take("a", at + LAST_USE_STEP_MS)).toBe(true);
});

test("a use is written after the clock was set back, too", () => {
  const uses = new LastUses();
  const at = 10 * 3_600_000;
  expect([uses.take("a", at), uses.take("a", at / 2), uses.take("a", at / 2 + 1)]).toEqual([true, true, false]);
});
