// GET /token and DELETE /token/{id}: which tokens were created, by whom and when, and that revoking one is final (T7).
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { revokeTokenOf } from "../../../ts/token/revoking.ts";
import { createTokenRecords, recordToken } from "../../../ts/token/token-records.ts";
import { until } from "../../support/child.ts";
import { type Gateway, openGateway, START_MS } from "../../support/gateway.ts";
import { PASSWORD, personOf } from "../../support/inventory.ts";
import { STREAM } from "../../support/publishing.ts";
import { ENDPOINT, OFFER, openWhipGateway } from "../../support/whip-gateway.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Row {
  readonly id: string;
  readonly kind: string;
  readonly state: string;
  readonly streamname: string;
  readonly stream: { readonly id: string; readonly name: string } | null;
  readonly made_by: { readonly kind: string; readonly id: string | null; readonly name: string | null };
  readonly created_at: string;
  readonly revoked_at: string | null;
  readonly last_used_at: string | null;
}
interface Stream {
  readonly id: string;
  readonly name: string;
}

const jtiOf = (token: string): string => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).jti;

const steps = (gateway: Gateway) => {
  const { call } = gateway;
  return {
    async newStream(): Promise<Stream> {
      const { body } = await call("POST", "/stream");
      const { id, ingest } = body as { id: string; ingest: { rtmp: { streamname: string } } };
      return { id, name: ingest.rtmp.streamname };
    },
    async web(streamname: string, more: object = {}, as: Parameters<Gateway["call"]>[2] = {}): Promise<string> {
      const body = { streamname, ingesturl: "rtmp://in.example/live", ...more };
      const { body: given } = await call("POST", "/webcaster", { ...as, body });
      return (given as { data: { token: string } }).data.token;
    },
    async list(query = "", key = gateway.keys.user): Promise<readonly Row[]> {
      const { status, body } = await call("GET", `/token${query}`, { key });
      expect(status, JSON.stringify(body)).toBe(200);
      return body as readonly Row[];
    },
    verified: async (token: string) =>
      (await call("POST", "/webcaster/verify", { key: null, body: { token } })).status === 200,
  };
};

describe("GET /token", () => {
  let gateway: Gateway;
  let one: Stream;
  let two: Stream;
  let ada: { readonly id: string; readonly email: string };
  let jtis: Readonly<Record<"play" | "web" | "person" | "nowhere", string>>;
  const ids = async (query: string) => (await steps(gateway).list(query)).map(({ id }) => id);

  beforeAll(async () => {
    gateway = await openGateway();
    const { newStream, web } = steps(gateway);
    [one, two] = [await newStream(), await newStream()];
    const person = personOf("administrator");
    ada = { ...((await gateway.call("POST", "/organisation/user", { body: person })).body as Row), ...person };
    const login = await gateway.call("POST", "/login", { key: null, body: { email: ada.email, password: PASSWORD } });
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const headers = { cookie, "x-csrf-token": (login.body as { csrf_token: string }).csrf_token };
    const play = (await gateway.call("POST", `/stream/${one.id}/play-token`)).body as { token: string };
    gateway.clock.ms += HOUR_MS;
    const byKey = await web(`${one.name}?passcode=s3cret`);
    gateway.clock.ms += HOUR_MS;
    const byPerson = await web(two.name, {}, { key: null, headers });
    gateway.clock.ms += HOUR_MS;
    const nowhere = await web("whatever-is-called-so");
    jtis = { play: jtiOf(play.token), web: jtiOf(byKey), person: jtiOf(byPerson), nowhere: jtiOf(nowhere) };
  });
  afterAll(() => gateway.close());

  test("lists what was created, with its stream, who created it and when, and neither the token nor its arguments", async () => {
    const rows = await steps(gateway).list();
    expect(rows.map(({ id }) => id)).toEqual([jtis.nowhere, jtis.person, jtis.web, jtis.play]);
    expect(rows[0]).toMatchObject({ streamname: "whatever-is-called-so", stream: null });
    expect(rows[1]).toMatchObject({ kind: "broadcast", stream: two, made_by: { kind: "user", id: ada.id } });
    expect(rows[2]).toMatchObject({ kind: "broadcast", state: "valid", streamname: one.name, stream: one });
    expect(rows[3]).toMatchObject({
      ...{ kind: "play", stream: one, made_by: { kind: "key" }, revoked_at: null, last_used_at: null },
      ...{ created_at: new Date(START_MS).toISOString(), expires_at: new Date(START_MS + DAY_MS).toISOString() },
    });
    expect(JSON.stringify(await gateway.db.selectFrom("token").selectAll().execute())).not.toContain("s3cret");
  });

  test("filters by stream, by who created it, by time, and by several of them", async () => {
    expect(await ids(`?stream=${one.id}`)).toEqual([jtis.web, jtis.play]);
    expect(await ids(`?who=${ada.id}`)).toEqual([jtis.person]);
    expect(await ids(`?who=${ada.id}&stream=${one.id}`)).toEqual([]);
    expect(await ids(`?who=${ada.id}&stream=${two.id}`)).toEqual([jtis.person]);
    const [from, to] = [HOUR_MS, 3 * HOUR_MS].map((ms) => new Date(START_MS + ms).toISOString());
    expect(await ids(`?from=${from}&to=${to}`)).toEqual([jtis.person, jtis.web]);
  });

  test("names those who created a token to people and administrators' keys only", async () => {
    const nameOf = async (key: string) => (await steps(gateway).list(`?who=${ada.id}`, key))[0]?.made_by.name;
    expect(await nameOf(gateway.keys.administrator)).toBe(ada.email);
    expect(await nameOf(gateway.keys.user)).toBeNull();
  });

  test("has pages", async () => {
    const seen: string[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const { body, headers } = await gateway.call("GET", `/token?quantity=3${cursor && `&cursor=${cursor}`}`);
      seen.push(...(body as readonly Row[]).map(({ id }) => id));
      cursor = headers.get("x-next-cursor");
    }
    expect(seen).toEqual([jtis.nowhere, jtis.person, jtis.web, jtis.play]);
  });

  test("is for those who may create tokens, of their own organisation", async () => {
    const { keys } = await gateway.newOrganisation("Second");
    expect(await steps(gateway).list("", keys.user)).toEqual([]);
    expect((await gateway.call("GET", "/token", { key: gateway.keys.readonly })).status).toBe(403);
    expect((await gateway.call("GET", `/token?stream=${one.id}`, { key: keys.user })).status).toBe(404);
    const revoked = await gateway.call("DELETE", `/token/${jtis.web}`, { key: keys.administrator });
    expect([revoked.status, revoked.body]).toMatchObject([404, { error: { message: "Unknown token" } }]);
  });
});

test("a token revoked by its id, by its jti or with its stream is listed as revoked, and never valid again", async () => {
  const gateway = await openGateway();
  const { newStream, web, list, verified } = steps(gateway);
  const { name } = await newStream();
  const tokens = [await web(name), await web(name), await web(name)];
  const [first = "", second = "", third = ""] = tokens;
  const revoke = async (key: string) => await gateway.call("DELETE", `/token/${jtiOf(first)}`, { key });
  expect((await revoke(gateway.keys.user)).status).toBe(403);
  expect(await revoke(gateway.keys.administrator)).toMatchObject({ status: 200, body: { state: "revoked" } });
  const again = await revoke(gateway.keys.administrator);
  expect(again).toMatchObject({ status: 200, body: { revoked_at: new Date(START_MS).toISOString() } });
  await gateway.call("POST", "/webcaster/revoke", { body: { jti: jtiOf(second) } });
  const states = async () => new Map((await list()).map(({ id, state }) => [id, state]));
  expect(await states()).toEqual(new Map(tokens.map((each) => [jtiOf(each), each === third ? "valid" : "revoked"])));
  await gateway.call("POST", "/webcaster/revoke", { body: { streamname: name } });
  const later = await web(name);
  expect([...(await states()).values()].toSorted()).toEqual(["revoked", "revoked", "revoked", "valid"]);
  expect(await Promise.all([...tokens, later].map(verified))).toEqual([false, false, false, true]);
  await gateway.close();
});

test("the list says when a token was last used, and a broadcast ends when its token is revoked", async () => {
  const gateway = await openWhipGateway();
  const { db, clock } = gateway;
  const issued = await gateway.tokens.issue({
    ...{ streamname: STREAM, ingesturl: "rtmp://ingest.example/live", exp: null, nbf: null, org: "Ab1Cd" },
  });
  const { id } = await db.selectFrom("organisation").select("id").executeTakeFirstOrThrow();
  await recordToken(db, issued, "broadcast", { organisationId: id, who: { kind: "operator", id: null } }, clock.ms);
  const headers = { authorization: `Bearer ${issued.token}`, "content-type": "application/sdp" };
  const offer = async () => (await gateway.call("POST", ENDPOINT, { body: OFFER, headers })).status;
  expect(await offer()).toBe(201);
  const row = () => db.selectFrom("token").selectAll().where("id", "=", issued.jti).executeTakeFirstOrThrow();
  await until("its use is recorded", async () => (await row()).last_used_at !== null);
  await db.transaction().execute((trx) => revokeTokenOf(trx, { id, hash: "Ab1Cd" }, issued, clock.ms));
  await until("it is ended", () => gateway.media.commands.some(({ command }) => command === "end"));
  expect(await offer()).toBe(401);
  await gateway.close();
});

test("of an organisation with more than it may have, those that expire first are no longer listed", async () => {
  const gateway = await openGateway();
  const { list } = steps(gateway);
  const clock = { now: () => START_MS };
  const opened = () => createTokenRecords({ db: gateway.db, clock, log: { warn: expect.fail } as never, rowsLimit: 2 });
  const [records, another] = [opened(), opened()];
  const maker = { organisationId: gateway.organisation.id, who: { kind: "operator", id: null } } as const;
  const issued = (id: number) => ({ token: "", streamname: "a", jti: `t${id}`, revision: 0 });
  for (const [id, days] of [9, 1, 5, 7].entries())
    await records.add({ ...issued(id), exp: (START_MS + days * DAY_MS) / 1000 }, "play", maker);
  await another.add({ ...issued(4), exp: (START_MS + 8 * DAY_MS) / 1000 }, "play", maker);
  await until("the others are removed", async () => (await list()).length === 2);
  expect((await list()).map(({ id }) => id).toSorted()).toEqual(["t0", "t4"]);
  await records.stop();
  await another.stop();
  await gateway.close();
});

test("while rows cannot be written, no token is given away; once they can, none is missing", async () => {
  const gateway = await openGateway();
  const { list, newStream } = steps(gateway);
  const { name } = await newStream();
  const make = () =>
    gateway.call("POST", "/webcaster", { body: { streamname: name, ingesturl: "rtmp://in.example/live" } });
  await gateway.db.schema.alterTable("token").renameTo("token_away").execute();
  let given = 0;
  const refused = await until("a refusal", async () => {
    const answer = await make();
    if (answer.status === 200) given += 1;
    return answer.status >= 500 && answer;
  });
  expect(JSON.stringify(refused.body)).not.toContain("eyJ");
  expect((await make()).status).toBe(refused.status);
  await gateway.db.schema.alterTable("token_away").renameTo("token").execute();
  await until("tokens again", async () => (await make()).status === 200);
  expect(await list()).toHaveLength(given + 1);
  await gateway.close();
});
