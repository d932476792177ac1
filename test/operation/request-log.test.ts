// The log line of a request names its caller: the kind, the id, and the organisation.
import { levels } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { STREAM } from "../support/publishing.ts";
import { NO_SESSION, openWhipGateway, TO_OURSELVES, TO_STREAM, type WhipGateway } from "../support/whip-gateway.ts";

/** The one line of the request with these response headers, without the fields that every line has. */
function lineOf(log: string, headers: Headers): Record<string, unknown> {
  const answers = log.split("\n").filter((line) => line.includes('"msg":"request answered"'));
  const lines = answers.filter((line) => line.includes(headers.get("x-request-id") ?? "no id"));
  expect(lines).toHaveLength(1);
  const { requestId: _, trace_id, time, msg, pid, hostname, level, tookMs, ...rest } = JSON.parse(lines[0] ?? "{}");
  expect(trace_id).toMatch(/^[0-9a-f]{32}$/);
  const wanted = rest.method === "GET" ? levels.values.debug : levels.values.info;
  expect([level, msg, typeof tookMs]).toEqual([wanted, "request answered", "number"]);
  return rest;
}

describe("on the management API", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await openGateway();
  });
  afterAll(() => gateway.close());

  const idOf = (key: string) => key.split("_")[1];
  const logged = async (method: string, path: string, options: Parameters<Gateway["call"]>[2] = {}) => {
    const answer = await gateway.call(method, path, options);
    return { answer, line: lineOf(gateway.log(), answer.headers) };
  };
  const address = "203.0.113.7";

  test("an API key is logged by its id", async () => {
    const organisation = gateway.organisation.id;
    const { line } = await logged("GET", "/organisation");
    const callerId = idOf(gateway.keys.administrator);
    const about = { method: "GET", route: "/organisation", status: 200, address };
    expect(line).toStrictEqual({ caller: "key", callerId, organisation, ...about });
  });

  test("an API key whose role is too low is logged, too", async () => {
    const { line } = await logged("DELETE", "/organisation/webhook", { key: gateway.keys.readonly });
    const organisation = gateway.organisation.id;
    expect(line).toMatchObject({ status: 403, caller: "key", callerId: idOf(gateway.keys.readonly), organisation });
  });

  test("an invalid API key is logged by the id it contains, unless it is mistyped", async () => {
    const other = await gateway.newOrganisation("Other");
    const key = other.keys.user;
    await gateway.db
      .updateTable("api_key")
      .set({ revoked_at: 1 })
      .where("id", "=", idOf(key) ?? "")
      .execute();
    const { line } = await logged("GET", "/organisation", { key });
    expect(line).toStrictEqual({
      caller: "none",
      shownKey: idOf(key),
      method: "GET",
      route: "/organisation",
      status: 403,
      address,
    });
    const mistyped = await logged("GET", "/organisation", { key: `${key.slice(0, -1)}!` });
    expect(mistyped.line).not.toHaveProperty("shownKey");
    expect(gateway.log()).not.toContain(key.slice(12));
  });

  test("a person is logged with the beginning of the session's hash, starting with the login", async () => {
    const body = { email: "ada@customer.example", password: "correct horse battery", role: "readonly" };
    const { id } = (await gateway.call("POST", "/organisation/user", { body })).body as { id: string };
    const signedIn = await logged("POST", "/login", { key: null, body });
    const cookie = signedIn.answer.headers.get("set-cookie")?.split(";")[0] ?? "";
    const person = { caller: "user", callerId: id, organisation: gateway.organisation.id };
    expect(signedIn.line).toMatchObject({ ...person, session: expect.stringMatching(/^[0-9a-f]{12}$/) });
    const { session } = signedIn.line;
    const read = await logged("GET", "/stream", { key: null, headers: { cookie } });
    expect(read.line).toMatchObject({ ...person, session, status: 200 });
    const [row] = await gateway.db.selectFrom("person_session").select("hash").execute();
    expect(row?.hash.startsWith(String(session))).toBe(true);
    // Without the page's token: refused, and still attributed to the person.
    const forged = await logged("PUT", "/me/password", { key: null, headers: { cookie }, body: {} });
    expect(forged.line).toMatchObject({ ...person, session, status: 403 });
    expect(gateway.log()).not.toContain(cookie.split("=")[1]);
  });

  test("a web token is logged by its jti and the hash of its organisation, and a request without a caller as none", async () => {
    const subject = { streamname: "Ab1Cd-s3cret", ingesturl: "rtmp://in.example/live" };
    const { body } = await gateway.call("POST", "/webcaster", { body: subject });
    const { token } = (body as { data: { token: string } }).data;
    const { line } = await logged("POST", "/webcaster/verify", { key: null, body: { token } });
    const { jti } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    expect(line).toMatchObject({ caller: "token", callerId: jti, organisationHash: gateway.organisation.hash });
    const wrong = await logged("POST", "/webcaster/verify", { key: null, body: { token: `${token}x` } });
    expect(wrong.line).toMatchObject({ caller: "none", status: 403 });
    expect((await logged("GET", "/nowhere/at/all", { key: null })).line).toMatchObject({ caller: "none", status: 404 });
    expect(gateway.log()).not.toMatch(/s3cret|nowhere/);
  });
});

describe("at the WHIP endpoint", () => {
  let gateway: WhipGateway;

  beforeAll(async () => {
    gateway = await openWhipGateway();
    await gateway.db.updateTable("stream").set({ id: stream.stream }).where("name", "=", STREAM).execute();
  });
  afterAll(() => gateway.close());

  const stream = { organisation: "org1", stream: `stream ${STREAM}` };
  const line = (headers: Headers) => lineOf(gateway.log(), headers);

  test("an offer is logged with organisation, stream and client id, and so are its session's requests", async () => {
    const opened = await gateway.offer(TO_STREAM);
    const clientId = gateway.openings().at(-1)?.clientId;
    expect(line(opened.headers)).toMatchObject({
      caller: "none",
      ...stream,
      clientId,
      route: "/p/webrtc",
      status: 201,
    });
    const session = new URL(opened.headers.get("location") ?? "").pathname;
    for (const [method, path, status] of [
      ["POST", "/metadata", 400],
      ["DELETE", "", 200],
    ] as const) {
      const answer = await gateway.call(method, session + path);
      const route = `/p/webrtc/:session${path}`;
      const expected = { caller: "whip_session", ...stream, clientId, route, method, status };
      expect(line(answer.headers)).toMatchObject(expected);
    }
    gateway.end(clientId ?? -1);
    expect(line((await gateway.call("DELETE", NO_SESSION)).headers)).toMatchObject({ caller: "none", status: 404 });
    expect(gateway.log()).not.toContain(session.split("/").at(-1));
    // In this test the ids of streams contain their names.
    expect(gateway.log().replaceAll(`stream ${STREAM}`, "")).not.toContain(STREAM);
  });

  test("the status address is logged as itself and not as a session", async () => {
    const { headers } = await gateway.call("GET", "/p/webrtc/status.json");
    expect(line(headers)).toMatchObject({ route: "/p/webrtc/status.json", status: 200 });
  });

  test("a web token is logged by its jti, and a refusal with what was known", async () => {
    gateway.customer.answer({ status: 403 });
    const subject = { streamname: STREAM, ingesturl: "rtmp://ingest.example/live", exp: null, nbf: null, org: null };
    const token = await gateway.tokens.issue(subject);
    const { jti } = await gateway.tokens.verify(token);
    const refused = await gateway.offer(TO_OURSELVES, { headers: { authorization: `Bearer ${token}` } });
    const expected = { caller: "token", callerId: jti, ...stream, clientId: expect.any(Number), status: 403 };
    expect(line(refused.headers)).toMatchObject(expected);
    expect(gateway.log()).not.toContain(token.split(".")[2]);
  });
});
