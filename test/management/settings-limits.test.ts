// The bounds of an organisation's settings: the last value that is accepted, and the first that is not.
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Gateway, openGateway } from "../support/gateway.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test.each([
  ["update_reject_after", 1, 1_000],
  ["update_max_unreachable", 0, 1_000],
  ["silence_s", 5, 3_600],
])("%s is from %d to %d", async (name, least, most) => {
  const set = async (value: number) =>
    (await gateway.call("PUT", "/organisation/settings", { body: { [name]: value } })).status;
  expect([await set(least - 1), await set(least), await set(most), await set(most + 1)]).toEqual([400, 200, 200, 400]);
});
