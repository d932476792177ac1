// A revocation is stored for as long as its token could be valid, and no longer.
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

const DAY_MS = 86_400_000;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test("the revocation of an expired token is deleted", async () => {
  const exp = gateway.clock.ms / 1_000 + 60;
  const made = await gateway.call("POST", "/webcaster", { body: { streamname: "a", ingesturl: "b", exp } });
  const { token } = (made.body as { data: { token: string } }).data;
  expect((await gateway.call("POST", "/webcaster/revoke", { body: { token } })).status).toBe(200);
  const revocations = () => gateway.db.selectFrom("token_revocation").select("kind").execute();
  expect(await revocations()).toHaveLength(1);
  gateway.clock.ms += 120_000;
  await until("it is deleted", async () => (await revocations()).length === 0);
});

test("revoking a stream's tokens covers those issued after an earlier revocation that has been deleted", async () => {
  const { body } = await gateway.call("POST", "/stream");
  const { streamname } = (body as { ingest: { rtmp: { streamname: string } } }).ingest.rtmp;
  const revoke = () => gateway.call("POST", "/webcaster/revoke", { body: { streamname } });
  const revocations = () => gateway.db.selectFrom("token_revocation").select("kind").execute();
  await revoke();
  await revoke();
  gateway.clock.ms += 200 * DAY_MS;
  const exp = gateway.clock.ms / 1_000 + 364 * 86_400;
  const made = await gateway.call("POST", "/webcaster", { body: { streamname, ingesturl: "b", exp } });
  const { token } = (made.body as { data: { token: string } }).data;
  gateway.clock.ms += 170 * DAY_MS;
  await until("they are deleted", async () => (await revocations()).length === 0);
  const verify = () => gateway.call("POST", "/webcaster/verify", { body: { token } });
  expect(await verify()).toMatchObject({ status: 200 });
  expect(await revoke()).toMatchObject({ status: 200 });
  expect(await verify()).toMatchObject({ status: 403, body: { message: "jwt revoked" } });
});
