// Short forms of R7 and R9. The long ones print their figures: `npm run bench -- webhook durability 10000`,
// `kills 100`. They run the build in dist.
import { expect, test } from "vitest";
import { durability } from "../../bench/_webhook-durability.mjs";
import { kills } from "../../bench/_webhook-kills.mjs";

test("every accepted publish gets its publish_done although a third of all answers fail and both sides restart", async () => {
  const { accepted, done, wrong, failures } = await durability(500);
  expect(wrong).toEqual([]);
  expect(done).toBe(accepted);
  expect(accepted).toBeGreaterThan(250);
  expect(failures).toBeGreaterThan(50);
}, 300_000);

test("every publish that was live when the service was killed gets its publish_done; no setting is lost", async () => {
  const { publishes, done, wrong, settingsLost } = await kills(2);
  expect(wrong).toEqual([]);
  expect(done).toBe(publishes);
  expect(publishes).toBeGreaterThanOrEqual(6);
  expect(settingsLost).toBe(0);
}, 300_000);
