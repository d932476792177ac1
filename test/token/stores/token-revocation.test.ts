// Revoked web tokens (T7): refused from then on, and the broadcasts they opened end.
import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { openRevocations, revokeStream } from "../../../ts/token/revocations.ts";
import { until } from "../../support/child.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { STREAM } from "../../support/publishing.ts";
import { ENDPOINT, OFFER, openWhipGateway, type WhipGateway } from "../../support/whip-gateway.ts";
import { onOneStore } from "../../support/whole-run.ts";

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function opened(): Promise<Gateway> {
  const gateway = await openGateway();
  open.push(gateway);
  return gateway;
}

const streamOf = async ({ call }: Gateway) =>
  ((await call("POST", "/stream")).body as { ingest: { rtmp: { streamname: string } } }).ingest.rtmp.streamname;
async function issue({ call }: Gateway, streamname: string): Promise<string> {
  const { body } = await call("POST", "/webcaster", { body: { streamname, ingesturl: "rtmp://in.example/live" } });
  return (body as { data: { token: string } }).data.token;
}
const jtiOf = (token: string) =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).jti as string;
const verified = async ({ call }: Gateway, token: string) => {
  const { status, body } = await call("POST", "/webcaster/verify", { key: null, body: { token } });
  return status === 200 ? "holds" : [status, body];
};
const REVOKED = [403, { success: false, errorCode: 1002, message: "jwt revoked" }];

test("a token that is revoked, by itself or by its jti, is no longer valid; others are", async () => {
  const gateway = await opened();
  const name = await streamOf(gateway);
  const [first, second, third] = [await issue(gateway, name), await issue(gateway, name), await issue(gateway, name)];
  const byToken = await gateway.call("POST", "/webcaster/revoke", { body: { token: first } });
  expect([byToken.status, byToken.body]).toEqual([200, { success: true, data: { jti: jtiOf(first) } }]);
  expect((await gateway.call("POST", "/webcaster/revoke", { body: { jti: jtiOf(second) } })).status).toBe(200);
  expect(await verified(gateway, first)).toEqual(REVOKED);
  expect(await verified(gateway, second)).toEqual(REVOKED);
  expect(await verified(gateway, third)).toBe("holds");
  const again = await gateway.restart({ HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" });
  open[0] = again;
  expect(await verified(again, first)).toEqual(REVOKED);
});

test("revoking a stream's tokens covers any arguments; tokens issued immediately afterwards are valid", async () => {
  const gateway = await opened();
  const name = await streamOf(gateway);
  const other = await issue(gateway, `${await streamOf(gateway)}?a=1`);
  for (let round = 0; round < 2; round += 1) {
    const before = [await issue(gateway, name), await issue(gateway, `${name}?passcode=s3cret`)];
    const { status, body } = await gateway.call("POST", "/webcaster/revoke", { body: { streamname: name } });
    expect([status, body]).toEqual([200, { success: true, data: { streamname: name } }]);
    for (const token of before) expect(await verified(gateway, token)).toEqual(REVOKED);
    expect(await verified(gateway, await issue(gateway, `${name}?passcode=s3cret`))).toBe("holds");
  }
  expect(await verified(gateway, other)).toBe("holds");
});

test("is for administrators, of streams of their own organisation, with one parameter at a time", async () => {
  const gateway = await opened();
  const name = await streamOf(gateway);
  const stranger = await gateway.newOrganisation("Other");
  const revoke = async (body: unknown, key = gateway.keys.administrator) => {
    const answer = await gateway.call("POST", "/webcaster/revoke", { body, key });
    return [answer.status, (answer.body as { errorCode?: number }).errorCode];
  };
  expect(await revoke({ streamname: name }, gateway.keys.user)).toEqual([403, 1001]);
  expect(await revoke({ streamname: name }, stranger.keys.administrator)).toEqual([404, 3001]);
  expect(await revoke({})).toEqual([400, 1000]);
  expect(await revoke({ jti: 7 })).toEqual([400, 1003]);
  expect(await revoke({ jti: "a", streamname: name })).toEqual([400, 9002]);
  expect(await revoke({ jti: "a".repeat(129) })).toEqual([400, 9002]);
  expect(await revoke({ token: "a.b.c" })).toEqual([403, 1002]);
});

test("another organisation that knows a token, or its jti, cannot revoke it", async () => {
  const gateway = await opened();
  const token = await issue(gateway, await streamOf(gateway));
  const { keys } = await gateway.newOrganisation("Other");
  for (const body of [{ jti: jtiOf(token) }, { token }]) {
    await gateway.call("POST", "/webcaster/revoke", { body, key: keys.administrator });
    expect(await verified(gateway, token)).toBe("holds");
  }
});

test("a revocation by another process takes effect within seconds", async () => {
  const gateway = await opened();
  const name = await streamOf(gateway);
  const token = await issue(gateway, name);
  await revokeStream(gateway.db, name, gateway.clock.ms);
  await until("refused", async () => (await verified(gateway, token)) !== "holds");
});

test("a revocation made after the clock was set back by an hour takes effect like any other", async () => {
  const gateway = await opened();
  const [first, second] = [await streamOf(gateway), await streamOf(gateway)];
  const token = await issue(gateway, second);
  await revokeStream(gateway.db, first, gateway.clock.ms);
  await until("the first is seen", () => seen(gateway, first));
  await revokeStream(gateway.db, second, gateway.clock.ms - 3_600_000);
  await until("refused", async () => (await verified(gateway, token)) !== "holds");
});

test("a running broadcast outlives its token's expiry, and ends when its stream's tokens are revoked", async () => {
  const gateway = await openWhipGateway();
  open.push(gateway);
  const first = await broadcasting(gateway);
  gateway.clock.ms += 8 * 86_400_000;
  expect(ended(gateway)).toEqual([]);
  await revokeStream(gateway.db, STREAM, gateway.clock.ms);
  await until("it is ended", () => ended(gateway).length === 1);
  expect(ended(gateway)).toEqual([
    { command: "end", clientId: first.clientId, reason: "kicked", description: "Token revoked" },
  ]);
  gateway.end(first.clientId, "kicked");
  const refused = await gateway.call("POST", ENDPOINT, { body: OFFER, headers: first.headers });
  expect([refused.status, JSON.parse(refused.body).detail]).toEqual([401, "jwt expired"]);
});

/** Whether a new token for this stream contains the revision of its revocation. */
async function seen(gateway: Gateway, name: string): Promise<boolean> {
  const [, claims = ""] = (await issue(gateway, name)).split(".");
  return Object.values(JSON.parse(Buffer.from(claims, "base64url").toString())).includes(1);
}

async function broadcasting(gateway: WhipGateway) {
  const ingesturl = "rtmp://ingest.example/live";
  const { token } = await gateway.tokens.issue({ streamname: STREAM, ingesturl, exp: null, nbf: null, org: null });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/sdp" };
  const answer = await gateway.call("POST", ENDPOINT, { body: OFFER, headers });
  expect(answer.status, answer.body).toBe(201);
  return { headers, clientId: gateway.openings().at(-1)?.clientId ?? -1 };
}

const ended = (gateway: WhipGateway) => gateway.media.commands.filter(({ command }) => command === "end");

onOneStore.test(
  "an organisation can have ten thousand tokens revoked one by one, without affecting another",
  async () => {
    const gateway = await opened();
    const [name, stranger] = [await streamOf(gateway), await gateway.newOrganisation("Other")];
    const rows = Array.from({ length: 10_000 }, (_, at) => {
      const value = `${gateway.organisation.hash}/made-up-${at}`;
      const times = { updated_at: gateway.clock.ms, expires_at: gateway.clock.ms + 60_000 };
      return { kind: "jti" as const, value, revision: 1, sequence: at + 1, ...times };
    });
    while (rows.length > 0) await gateway.db.insertInto("token_revocation").values(rows.splice(0, 1_000)).execute();
    const again = await gateway.restart({ HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" });
    open[0] = again;
    const revoke = async (body: object, key = again.keys.administrator) =>
      (await again.call("POST", "/webcaster/revoke", { body, key })).status;
    expect(await revoke({ jti: "one-more" })).toBe(400);
    expect(await revoke({ token: await issue(again, name) })).toBe(400);
    expect(await revoke({ streamname: name })).toBe(200);
    expect(await revoke({ jti: "one-more" }, stranger.keys.administrator)).toBe(200);
    again.clock.ms += 60_000;
    await until("they are forgotten", async () => (await revoke({ jti: "one-more" })) === 200);
  },
);

onOneStore.test(
  "an organisation can have the tokens of ten thousand streams revoked, and deleting a stream frees a place",
  async () => {
    const gateway = await opened();
    const first = await streamOf(gateway);
    await revokeStream(gateway.db, first, gateway.clock.ms);
    const rows = Array.from({ length: 9_999 }, (_, at) => {
      const value = `${gateway.organisation.hash}-made-up-${at}`;
      const times = { updated_at: gateway.clock.ms, expires_at: gateway.clock.ms + 3_600_000 };
      return { kind: "stream" as const, value, revision: 1, sequence: 1, ...times };
    });
    while (rows.length > 0) await gateway.db.insertInto("token_revocation").values(rows.splice(0, 1_000)).execute();
    const again = await gateway.restart({ HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" });
    open[0] = again;
    const [second, third] = [await streamOf(again), await streamOf(again)];
    const revoke = async (streamname: string) =>
      await again.call("POST", "/webcaster/revoke", { body: { streamname } });
    const refused = await revoke(second);
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining("limit of 10000")]);
    expect((await revoke(first)).status).toBe(200);
    const { id } = await again.db.selectFrom("stream").select("id").where("name", "=", first).executeTakeFirstOrThrow();
    expect((await again.call("DELETE", `/stream/${id}`)).status).toBe(200);
    expect((await revoke(first)).status).toBe(404);
    await until("a place is free", async () => (await revoke(second)).status === 200);
    expect((await revoke(third)).status).toBe(400);
    again.clock.ms += 60_000;
    const now = () => again.clock.ms;
    const others = await openRevocations({
      db: again.db,
      clock: { now },
      log: pino({ level: "silent" }),
      forgetEveryMs: 0,
    });
    const row = again.db.selectFrom("token_revocation").select("value").where("value", "=", first);
    await until("its row is deleted", async () => (await row.execute()).length === 0);
    others.stop();
  },
);
