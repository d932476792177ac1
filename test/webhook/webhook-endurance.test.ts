// Short forms of R7 and R9. The long ones print their figures: `npm run bench -- webhook durability 10000`,
// `kills 100`. They run the build in dist.
import { expect, test } from "vitest";
import { durability } from "../../bench/_webhook-durability.mjs";
import { kills } from "../../bench/_webhook-kills.mjs";
import { isWholeRun } from "../support/whole-run.ts";

/** Publishes; each side is restarted after one half of them. */
const COUNT = isWholeRun ? 500 : 100;
const KILLS = isWholeRun ? 2 : 1;

test("every accepted publish gets its publish_done although a third of all answers fail and both sides restart", async () => {
  const { accepted, done, wrong, failures } = await durability(COUNT, COUNT / 2);
  expect(wrong).toEqual([]);
  expect(done).toBe(accepted);
  expect(accepted).toBeGreaterThan(COUNT / 2);
  expect(failures).toBeGreaterThan(COUNT / 10);
}, 300_000);

test("every publish that was live when the service was killed gets its publish_done; no setting is lost", async () => {
  const { publishes, done, wrong, settingsLost } = await kills(KILLS);
  expect(wrong).toEqual([]);
  expect(done).toBe(publishes);
  expect(publishes).toBeGreaterThanOrEqual(3 * KILLS);
  expect(settingsLost).toBe(0);
}, 300_000);
