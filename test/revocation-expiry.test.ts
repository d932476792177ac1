// A revocation is kept for as long as its token could hold, and no longer.
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "./support/child.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test("the revocation of a token that has expired is forgotten", async () => {
  const exp = gateway.clock.ms / 1_000 + 60;
  const made = await gateway.call("POST", "/webcaster", { body: { streamname: "a", ingesturl: "b", exp } });
  const { token } = (made.body as { data: { token: string } }).data;
  expect((await gateway.call("POST", "/webcaster/revoke", { body: { token } })).status).toBe(200);
  const revocations = () => gateway.db.selectFrom("token_revocation").select("kind").execute();
  expect(await revocations()).toHaveLength(1);
  gateway.clock.ms += 120_000;
  await until("it is forgotten", async () => (await revocations()).length === 0);
});
