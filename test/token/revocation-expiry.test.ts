// A revocation is stored for as long as its token could be valid, and no longer.
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openRevocations, revokeToken } from "../../ts/token/revocations.ts";
import { until } from "../support/child.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

const DAY_MS = 86_400_000;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

/** Those of the store, by a service that forgets what has expired `everyMs`. */
async function open(everyMs: number) {
  const { db, clock } = gateway;
  const now = () => clock.ms;
  return await openRevocations({ db, clock: { now }, log: pino({ level: "silent" }), forgetEveryMs: everyMs });
}

async function revokedToken(): Promise<void> {
  const exp = gateway.clock.ms / 1_000 + 60;
  const made = await gateway.call("POST", "/webcaster", { body: { streamname: "a", ingesturl: "b", exp } });
  const { token } = (made.body as { data: { token: string } }).data;
  expect((await gateway.call("POST", "/webcaster/revoke", { body: { token } })).status).toBe(200);
}

test("the revocation of an expired token is deleted", async () => {
  const revocations = () => gateway.db.selectFrom("token_revocation").select("kind").execute();
  await revokedToken();
  expect(await revocations()).toHaveLength(1);
  gateway.clock.ms += 120_000;
  const opened = await open(0);
  await until("it is deleted", async () => (await revocations()).length === 0);
  opened.stop();
});

test("a clock that is set forward past the expiry, and back, makes no revoked token valid again", async () => {
  const { db, clock } = gateway;
  await revokedToken();
  const opened = await open(3_600_000);
  clock.ms += 120_000;
  // Two that are read one after the other: the first look at the clock of the future is over.
  for (const jti of ["one", "two"]) {
    await revokeToken(db, jti, clock.ms / 1_000 + 60, clock.ms);
    await until("it is read", () => opened.isRevoked({ jti, streamname: "a", revision: 0 }));
  }
  clock.ms -= 120_000;
  const rows = await db.selectFrom("token_revocation").select("value").execute();
  expect(rows).toHaveLength(3);
  for (const { value } of rows) expect(opened.isRevoked({ jti: value, streamname: "a", revision: 0 })).toBe(true);
  opened.stop();
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
  const opened = await open(0);
  await until("they are deleted", async () => (await revocations()).length === 0);
  opened.stop();
  const verify = () => gateway.call("POST", "/webcaster/verify", { body: { token } });
  expect(await verify()).toMatchObject({ status: 200 });
  expect(await revoke()).toMatchObject({ status: 200 });
  expect(await verify()).toMatchObject({ status: 403, body: { message: "jwt revoked" } });
});
