// How a WHIP session's URL answers after the session's end (P7): who ended it, in whose words, and whether a client may
// start again by itself; and how its stream refuses new publishes for a while (M10).
import { afterEach, beforeEach, expect, test } from "vitest";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { hashPassword } from "../../ts/organisation/passwords.ts";
import { addPerson } from "../../ts/organisation/people.ts";
import { endingOf } from "../../ts/publish/ending/ending.ts";
import { addStream, STREAM, until } from "../support/publishing.ts";
import {
  NO_SESSION,
  ORIGIN,
  openWhipGateway,
  TO_OURSELVES,
  TO_STREAM,
  type WhipGateway,
} from "../support/whip-gateway.ts";

const STREAM_ID = encodeURIComponent(`stream ${STREAM}`);
const PASSWORD = "correct horse battery staple";

let gateway: WhipGateway;
let key: string;

beforeEach(async () => {
  gateway = await openWhipGateway({
    settings: { updateSeconds: 0.2 },
    env: { HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "0" },
  });
  const now = gateway.clock.ms;
  ({ key } = await addApiKey(gateway.db, { organisationId: "org1", role: "administrator", now }));
});
afterEach(() => gateway.close());

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
}

/** A request of the management API. */
async function api(
  method: string,
  path: string,
  body?: object,
  headers: object = { "x-service-apikey": key },
): Promise<Answer> {
  const request = new Request(`${ORIGIN}${path}`, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const peer = { incoming: { socket: { remoteAddress: "203.0.113.9", remotePort: 1, remoteFamily: "IPv4" } } };
  const fetch = gateway.fetch as (request: Request, env: object) => Promise<Response>;
  const response = await fetch(request, peer);
  return { status: response.status, body: (await response.json()) as Answer["body"], headers: response.headers };
}

/** Headers of a person who is signed in to the dashboard. */
async function personHeaders(): Promise<object> {
  const person = { organisation_id: "org1", email: "ada@example.org", role: "administrator" } as const;
  await addPerson(gateway.db, { ...person, password_hash: await hashPassword(PASSWORD) }, gateway.clock.ms);
  const { body, headers } = await api(
    "POST",
    "/login",
    { email: person.email, password: PASSWORD },
    { origin: ORIGIN },
  );
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  return { cookie, "x-csrf-token": String(body.csrf_token) };
}

const problemAt = async (session: string, method = "GET") => {
  const { status, body } = await gateway.call(method, session);
  return { status, ...(body === "" ? {} : (JSON.parse(body) as object)) };
};
/** The media core carries out the end. */
function finish(clientId: number): void {
  const { reason } = gateway.media.commands.findLast(
    (each) => each.command === "end" && each.clientId === clientId,
  ) as {
    readonly reason: "kicked";
  };
  gateway.end(clientId, reason);
}

test.each([
  ["a person in the dashboard", "ended_by_person", "person", "Shown to you"],
  ["the API", "ended_by_api", "api", "Off air"],
  ["a stop with a reason", "ended_by_api", "api", "Enough for today"],
  ["a lock", "stream_locked", "lock", "Stream was locked"],
  ["a stop without a reason, which locks", "stream_locked", "lock", "Stream was stopped"],
  ["the deletion of its stream", "stream_deleted", "deletion", "Stream was deleted"],
  ["the customer's 403", "ended_by_customer", "customer", "Your subscription is over"],
  ["the revocation of its token", "token_revoked", "revocation", "Token revoked"],
  ["the operator, who disabled the organisation", "ended_by_operator", "operator", "Organisation is not enabled"],
] as const)(
  "a session ended by %s answers so on every method, while it ends and afterwards: it is final",
  async (_, code, by, reason) => {
    const { token } = await gateway.tokens.issue({
      streamname: STREAM,
      ingesturl: "rtmp://ingest.example/live",
      exp: null,
      nbf: null,
      org: null,
    });
    const { session, clientId } = await gateway.opened(TO_STREAM, { headers: { authorization: `Bearer ${token}` } });
    expect((await gateway.call("GET", session)).status).toBe(204);
    const said = { reason };
    if (code === "ended_by_person") {
      expect(await api("POST", `/session/${clientId}/kick`, said, await personHeaders())).toMatchObject({
        status: 200,
      });
    } else if (reason === "Off air") await api("POST", `/session/${clientId}/kick`, said);
    else if (reason === "Enough for today") await api("PUT", `/stream/${STREAM_ID}/stop`, said);
    else if (reason === "Stream was locked") await api("PUT", `/stream/${STREAM_ID}/lock`);
    else if (reason === "Stream was stopped") await api("PUT", `/stream/${STREAM_ID}/stop`, {});
    else if (by === "deletion") await api("DELETE", `/stream/${STREAM_ID}`);
    else if (by === "customer") {
      gateway.customer.answer({ status: 403, body: `${reason}\n`, headers: { "content-type": "text/plain" } });
    } else if (by === "revocation") {
      gateway.clock.ms += 1_000;
      await api("POST", "/webcaster/revoke", { token });
    } else gateway.publishing.kick(() => true, endingOf("ended_by_operator"));
    await until(() => gateway.media.commands.some((each) => each.command === "end" && each.clientId === clientId));
    const expected = { status: 410, code, ended_by: by, detail: reason, final: true, type: `/docs/problems#${code}` };
    expect(await problemAt(session)).toMatchObject(expected);
    finish(clientId);
    for (const method of ["GET", "PATCH", "DELETE"]) expect(await problemAt(session, method)).toMatchObject(expected);
    expect(await problemAt(`${session}/metadata`, "POST")).toMatchObject(expected);
    expect((await gateway.call("HEAD", session)).status).toBe(410);
    expect((await gateway.call("OPTIONS", session)).status).toBe(200);
    const ended = gateway.db.selectFrom("publish").select("state").where("client_id", "=", clientId);
    await until(async () => (await ended.executeTakeFirst())?.state === "ended");
    gateway.clock.ms += 121_000;
    expect([await problemAt(session), await problemAt(session, "DELETE")]).toMatchObject([
      { status: 204 },
      { status: 404 },
    ]);
  },
  30_000,
);

test.each([
  ["broadcaster_left", "broadcast_lost", "loss", false],
  ["silent", "broadcast_lost", "loss", false],
  ["no_media", "broadcast_lost", "loss", false],
  ["shutdown", "service_stopped", "service", false],
  ["internal_error", "service_stopped", "service", false],
  ["unpublished", "ended_by_broadcaster", "broadcaster", true],
  ["replaced", "replaced", "successor", true],
  ["upstream_refused", "upstream_refused", "upstream", true],
] as const)("an end that is %s answers %s, by %s; final: %s", async (reason, code, ended_by, final) => {
  const { session, clientId } = await gateway.opened();
  gateway.end(clientId, reason);
  expect(await problemAt(session)).toMatchObject({ status: 410, code, ended_by, final });
});

test("a lost broadcast that a person then ends is over for good", async () => {
  const { session, clientId } = await gateway.opened();
  gateway.end(clientId, "broadcaster_left", undefined, true);
  expect(await problemAt(session)).toMatchObject({ code: "broadcast_lost", final: false });
  await api("PUT", `/stream/${STREAM_ID}/stop`, { reason: "That was it" });
  expect(await problemAt(session)).toMatchObject({ code: "ended_by_api", detail: "That was it", final: true });
});

test("a DELETE that ends a session answers 200, and its repetition that the broadcaster ended it", async () => {
  const { session, clientId } = await gateway.opened();
  expect((await gateway.call("DELETE", session)).status).toBe(200);
  const expected = { status: 410, code: "ended_by_broadcaster", final: true };
  expect(await problemAt(session, "DELETE")).toMatchObject(expected);
  gateway.end(clientId);
  expect(await problemAt(session, "DELETE")).toMatchObject(expected);
});

test("sessions that never existed answer as before, whatever their ids", async () => {
  for (const path of [NO_SESSION, `${NO_SESSION}.1a`, "/p/webrtc/x", "/p/webrtc/%00"]) {
    expect((await gateway.call("GET", path)).status).toBe(204);
    expect((await gateway.call("DELETE", path)).status).toBe(404);
    expect((await gateway.call("PATCH", path)).status).toBe(404);
  }
});

test("many ends in a row cost bounded memory, and each still answers", async () => {
  const sessions: string[] = [];
  for (let n = 0; n < 3; n += 1) {
    const { session, clientId } = await gateway.opened();
    await api("POST", `/session/${clientId}/kick`, { reason: `End ${n}` });
    finish(clientId);
    sessions.push(session);
  }
  for (const [n, session] of sessions.entries()) expect(await problemAt(session)).toMatchObject({ detail: `End ${n}` });
});

test("a stop refuses the stream for as long as it says, in words, on every protocol; then it goes live again", async () => {
  const { clientId } = await gateway.opened();
  const stopped = await api("PUT", `/stream/${STREAM_ID}/stop`, { reason: "Off air", refuse_s: 30 });
  expect(stopped).toMatchObject({
    status: 200,
    body: { refused_until: new Date(gateway.clock.ms + 30_000).toISOString() },
  });
  expect(stopped.body.state).not.toBe("locked");
  finish(clientId);
  const asked = gateway.customer.calls("publish").length;
  const refused = await gateway.offer(TO_STREAM);
  expect(refused.headers.get("retry-after")).toBe("30");
  expect(JSON.parse(refused.body)).toMatchObject({
    ...{ status: 403, code: "refused_after_end", detail: "Off air (refused for another 30 s)" },
  });
  gateway.clock.ms += 29_000;
  expect(JSON.parse((await gateway.offer(TO_STREAM)).body)).toMatchObject({
    detail: "Off air (refused for another 1 s)",
  });
  expect(gateway.customer.calls("publish")).toHaveLength(asked);
  gateway.clock.ms += 1_000;
  await gateway.opened();
  expect((await api("GET", `/stream/${STREAM_ID}`)).body.refused_until).toBeNull();
});

test("a refusal is lifted by unlock and by the next stop, survives a lock, and is bounded", async () => {
  const stop = (body: object) => api("PUT", `/stream/${STREAM_ID}/stop`, body);
  const isRefused = async () => (await gateway.offer(TO_STREAM)).status === 403;
  await stop({ refuse_s: 3_600 });
  expect(await isRefused()).toBe(true);
  expect((await api("PUT", `/stream/${STREAM_ID}/unlock`)).body).toMatchObject({
    refused_until: null,
    state: "created",
  });
  const { clientId } = await gateway.opened();
  await stop({ refuse_s: 10 });
  finish(clientId);
  expect(await isRefused()).toBe(true);
  await stop({ refuse_s: 0 });
  const next = await gateway.opened();
  await api("POST", `/session/${next.clientId}/kick`, { refuse_s: 10 });
  finish(next.clientId);
  await api("PUT", `/stream/${STREAM_ID}/lock`);
  await api("PUT", `/stream/${STREAM_ID}/unlock`);
  expect(await isRefused()).toBe(false);
  for (const refuse_s of [-1, 3_601, 1.5, "30"]) expect(await stop({ refuse_s })).toMatchObject({ status: 400 });
  expect(await stop({ reason: "ü" })).toMatchObject({ status: 400 });
});

test("an end by the API refuses nothing unless asked, and other streams are never refused", async () => {
  const { clientId } = await gateway.opened();
  await addStream(gateway.db, "Ab1Cd-other", "created");
  await api("POST", `/session/${clientId}/kick`, { reason: "Off air" });
  finish(clientId);
  const next = await gateway.opened();
  await api("PUT", `/stream/${STREAM_ID}/stop`, { reason: "Off air", refuse_s: 60 });
  finish(next.clientId);
  await gateway.opened(`${TO_OURSELVES}&stream_name=Ab1Cd-other`);
});

test("a publish whose customer is asked while its stream is stopped is refused with the reason", async () => {
  let answered = () => {};
  gateway.customer.answer(async ({ call }) => {
    if (call === "publish") await new Promise<void>((resolve) => (answered = resolve));
    return { status: 200 };
  });
  const offered = gateway.offer(TO_STREAM);
  await until(() => gateway.customer.calls("publish").length === 1);
  await api("PUT", `/stream/${STREAM_ID}/stop`, { reason: "Off air", refuse_s: 30 });
  answered();
  const problem = JSON.parse((await offered).body) as { status: number; detail: string };
  expect(problem.status).toBe(403);
  expect(problem.detail).toContain("Off air");
});

test("history, audit, timeline and log keep who ended a publish, and the reason", async () => {
  const { clientId } = await gateway.opened();
  await api("POST", `/session/${clientId}/kick`, { reason: "Off air", refuse_s: 5 });
  finish(clientId);
  const publishes = () => api("GET", `/stream/${STREAM_ID}/publish`) as unknown as Promise<{ body: readonly object[] }>;
  await until(async () => ((await publishes()).body[0] as { state: string }).state === "ended");
  const who = { kind: "key", id: expect.any(String) };
  expect((await publishes()).body[0]).toMatchObject({
    ...{ end_reason: "kicked", end: { code: "ended_by_api", by: "api", who, reason: "Off air" } },
    end_words: "It was ended through the API: Off air",
  });
  const audit = (await api("GET", "/organisation/audit?action=session.kick")) as unknown as { body: readonly object[] };
  expect(audit.body[0]).toMatchObject({ who, detail: { reason: "Off air", refuse_s: 5 } });
  const timeline = (await api("GET", `/session/${clientId}/timeline`)).body as {
    entries?: readonly { text: string }[];
  };
  expect(JSON.stringify(timeline)).toContain("it was ended through the API: Off air");
  expect(gateway.log()).toContain('"code":"ended_by_api"');
});
