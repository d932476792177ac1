// Whatever refuses a publish or a play, by RTMP, WHIP or v5: one row with reason, address, protocol and stream, and one
// log line with the stream's id and the hash of its name, never the name or what came behind it.
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RefusalReason } from "../../ts/publish/refusals/reasons.ts";
import { GivenCapacity } from "../support/given-capacity.ts";
import { addStream, until } from "../support/publishing.ts";
import { connectV5 } from "../support/v5-client.ts";
import { OUTPUT, openV5Stage, type V5Stage, wanted } from "../support/v5-stage.ts";

interface Case {
  readonly what: string;
  readonly protocol: "rtmp" | "whip" | "v5";
  readonly reason: RefusalReason;
  readonly request?: "publish" | "play";
  /** What is known of the stream: by default its name, which it has. */
  readonly of?: "a stream" | "no stream" | "nothing";
  /** `name`: of a stream made for this case. */
  send(name: string, address: string): Promise<unknown>;
}

const PASS_CODE = "s3cretPassCode";
const capacity = new GivenCapacity();
let stage: V5Stage;
let requests = 1_000;

const rtmp = (kind: "publish_requested" | "play_requested", name: string, address: string, args: string | null) => {
  requests += 1;
  const request = requests;
  const sent = { request, app: "live", name: Buffer.from(name), address, clientId: null };
  stage.gateway.publishing.handle({ kind, ...sent, arguments: args === null ? null : Buffer.from(args) } as never);
  return until(() => stage.gateway.media.commands.some((each) => "request" in each && each.request === request));
};
const publish = (name: string, address: string, args = `passcode=${PASS_CODE}`) =>
  rtmp("publish_requested", name, address, args);
const play = (name: string, address: string, args: string | null = null) => rtmp("play_requested", name, address, args);
const offer = async (
  name: string | null,
  peer: string,
  { url = OUTPUT, args = `%3Fpasscode%3D${PASS_CODE}`, more = "", ...call }: Readonly<Record<string, string>> = {},
) => {
  const target = `${name === null ? "" : `stream_name=${name}${args}&`}${url && `stream_url=${url}`}${more}`;
  const { authorization, type, body } = call;
  const headers = { ...(authorization && { authorization }), ...(type && { "content-type": type }) };
  return await stage.gateway.offer(target, { peer, headers, ...(body !== undefined && { body }) });
};
const v5 = async (address: string, signIn: object, start: object | null = null) => {
  const client = await connectV5(stage.http, 1, address);
  const { session_id: session, error } = await client.call("sign_in", { api_version: "5", ...signIn });
  if (start !== null && error === undefined) await client.call("start_broadcast", wanted(String(session), start));
  await client.close();
};
const locked = (name: string) =>
  stage.gateway.db.updateTable("stream").set({ state: "locked" }).where("name", "=", name).execute();
const during = async (settings: Parameters<V5Stage["gateway"]["change"]>[0], act: () => Promise<unknown>) => {
  const before = { require_token: false, publish_key: false, play: "open" } as const;
  await stage.gateway.change(settings);
  await act();
  await stage.gateway.change(before);
};
const whenFull = async (act: () => Promise<unknown>) => {
  capacity.full = "no memory";
  await act();
  capacity.full = null;
};
const token = (name: string, exp?: number) =>
  stage.newToken({ streamname: `${name}?passcode=${PASS_CODE}`, ...(exp && { exp }) });
const expired = async (name: string) => {
  const jwt = await token(name, stage.gateway.tokens.now() + 5);
  stage.gateway.clock.ms += 6_000;
  return jwt;
};

const CASES: readonly Case[] = [
  ...(["rtmp", "whip", "v5"] as const).flatMap((protocol): Case[] => {
    const by = (name: string, address: string): Promise<unknown> => {
      if (protocol === "rtmp") return publish(name, address);
      if (protocol === "whip") return offer(name, address);
      return v5(address, { bintu_api_key: stage.apiKey }, { streamname: name });
    };
    const all: Omit<Case, "protocol" | "what">[] = [
      { reason: "locked_stream", send: async (name, at) => [await locked(name), await by(name, at)] },
      { reason: "full", send: (name, at) => whenFull(() => by(name, at)) },
      { reason: "key_missing", send: (name, at) => during({ publish_key: true }, () => by(name, at)) },
    ];
    return all.map((each) => ({ ...each, protocol, what: each.reason }));
  }),
  { what: "an unknown name", protocol: "rtmp", reason: "unknown_stream", of: "no stream", send: publish },
  { what: "an unknown name", protocol: "whip", reason: "unknown_stream", of: "no stream", send: offer },
  {
    what: "a reserved field",
    protocol: "rtmp",
    reason: "reserved_field",
    send: (name, at) => publish(name, at, `clientid=1&passcode=${PASS_CODE}`),
  },
  {
    what: "a reserved field",
    protocol: "whip",
    reason: "reserved_field",
    send: (name, at) => offer(name, at, { args: "%3Fname%3Dother" }),
  },
  {
    what: "control characters",
    protocol: "whip",
    reason: "malformed_name",
    send: (name, at) => offer(name, at, { args: "%3Fa%3D%01" }),
  },
  {
    what: "no token",
    protocol: "rtmp",
    reason: "token_required",
    send: (n, at) => during({ require_token: true }, () => publish(n, at)),
  },
  {
    what: "no token",
    protocol: "whip",
    reason: "token_required",
    send: (n, at) => during({ require_token: true }, () => offer(n, at)),
  },
  {
    what: "a token of another stream",
    protocol: "rtmp",
    reason: "token_of_another_stream",
    send: (name, at) =>
      during({ require_token: true }, async () => publish(name, at, `token=${await token("Ab1Cd-else")}`)),
  },
  {
    what: "a token of another stream",
    protocol: "whip",
    reason: "token_of_another_stream",
    send: async (name, at) => offer(name, at, { authorization: `Bearer ${await token("Ab1Cd-else")}` }),
  },
  {
    what: "an expired token, which alone names the stream",
    protocol: "whip",
    reason: "token_expired",
    send: async (name, at) => offer(null, at, { url: "", authorization: `Bearer ${await expired(name)}` }),
  },
  {
    what: "an expired token, which alone names the stream",
    protocol: "v5",
    reason: "token_expired",
    send: async (name, at) => v5(at, { jwt: await expired(name) }),
  },
  {
    what: "a forged token",
    protocol: "v5",
    reason: "token_invalid",
    send: async (name, at) => v5(at, { jwt: (await token(name)).replace(/\.[^.]*$/, `.${"A".repeat(86)}`) }),
  },
  { what: "no credentials", protocol: "v5", reason: "token_required", of: "nothing", send: (_, at) => v5(at, {}) },
  {
    what: "a wrong API key",
    protocol: "v5",
    reason: "key_not_allowed",
    of: "nothing",
    send: (_, at) => v5(at, { bintu_api_key: "wrong" }),
  },
  {
    what: "an output that is not ours",
    protocol: "v5",
    reason: "bad_stream_url",
    send: (name, at) =>
      v5(at, { bintu_api_key: stage.apiKey }, { streamname: name, output: "rtmp://elsewhere.example/x" }),
  },
  {
    what: "a wrong key",
    protocol: "rtmp",
    reason: "key_wrong",
    send: (n, at) => during({ publish_key: true }, () => publish(n, at, "key=guess")),
  },
  {
    what: "a wrong key",
    protocol: "whip",
    reason: "key_wrong",
    send: (n, at) => during({ publish_key: true }, () => offer(n, at, { args: "%3Fkey%3Dguess" })),
  },
  { what: "no stream_url", protocol: "whip", reason: "bad_request", send: (name, at) => offer(name, at, { url: "" }) },
  {
    what: "a bad connect_info",
    protocol: "whip",
    reason: "bad_request",
    send: (n, at) => offer(n, at, { more: "&connect_info=%5B" }),
  },
  { what: "no stream_name", protocol: "whip", reason: "bad_request", of: "nothing", send: (_, at) => offer(null, at) },
  {
    what: "a stream_url that is not allowed",
    protocol: "whip",
    reason: "bad_stream_url",
    send: (n, at) => offer(n, at, { url: "rtmp://elsewhere.example/x" }),
  },
  {
    what: "JSON for an offer",
    protocol: "whip",
    reason: "offer_refused",
    send: (n, at) => offer(n, at, { type: "application/json" }),
  },
  {
    what: "an offer that is no SDP",
    protocol: "whip",
    reason: "offer_refused",
    send: (n, at) => offer(n, at, { body: "hello" }),
  },
  { what: "a play of what is not live", protocol: "rtmp", request: "play", reason: "not_live", send: play },
  {
    what: "a play of an unknown name",
    protocol: "rtmp",
    request: "play",
    reason: "not_live",
    of: "no stream",
    send: (name, at) => play(name, at, `token=${PASS_CODE}`),
  },
];

const nameOf = (n: number) => `Ab1Cd-case${n}`;
const addressOf = (n: number) => `198.51.100.${n + 1}`;
const hashOf = (name: string) => createHash("sha256").update(name).digest("hex").slice(0, 16);
let lines: readonly Record<string, unknown>[] = [];

beforeAll(async () => {
  stage = await openV5Stage({ capacity });
  for (const [n, { of, send }] of CASES.entries()) {
    if (of === undefined) await addStream(stage.gateway.db, nameOf(n), "created");
    await send(nameOf(n), addressOf(n));
  }
  const rows = () => stage.gateway.db.selectFrom("refusal").select("address").execute();
  await until(async () => new Set((await rows()).map(({ address }) => address)).size >= CASES.length);
  const written = stage.gateway
    .log()
    .split("\n")
    .filter((line) => line !== "");
  lines = written.map((line) => JSON.parse(line)).filter(({ msg }) => /^(publish|player) denied$/.test(msg));
}, 60_000);
afterAll(() => stage?.close());

test.each(CASES.map((each, n) => [each.request ?? "publish", each.protocol, each.what, each, n] as const))(
  "a %s by %s with %s is one row and one line",
  async (request, protocol, _, { of = "a stream", reason }, n) => {
    const { db } = stage.gateway;
    const name = of === "nothing" ? null : nameOf(n);
    const stream = of === "a stream" ? `stream ${name}` : null;
    const rows = await db.selectFrom("refusal").selectAll().where("address", "=", addressOf(n)).execute();
    expect(rows.map((row) => ({ ...row, count: Number(row.count) }))).toMatchObject([
      { request, protocol, reason, count: 1, stream_id: stream, organisation_id: stream === null ? "" : "org1" },
    ]);
    expect(rows[0]?.name).toBe(of === "no stream" ? name : null);
    const [line, ...others] = lines.filter(({ address }) => address === addressOf(n));
    expect(others).toEqual([]);
    expect(line).toMatchObject({ cause: reason, protocol, ...(stream !== null && { stream, organisation: "org1" }) });
    expect(line?.["nameHash"]).toBe(name === null ? undefined : hashOf(name));
    if (of === "no stream") expect(JSON.stringify([line, rows[0]?.detail])).not.toContain(nameOf(n));
  },
);

test("neither rows nor lines contain what came behind a name", async () => {
  expect(JSON.stringify(await stage.gateway.db.selectFrom("refusal").selectAll().execute())).not.toContain(PASS_CODE);
  expect(JSON.stringify(lines)).not.toContain(PASS_CODE);
});

describe("what is refused before there is a publish request", () => {
  const rowsWith = (reason: RefusalReason, address: string) =>
    stage.gateway.db
      .selectFrom("refusal")
      .selectAll()
      .where("reason", "=", reason)
      .where("address", "=", address)
      .execute();
  const rowWith = async (reason: RefusalReason, address: string) => {
    await until(async () => (await rowsWith(reason, address)).length > 0);
    return (await rowsWith(reason, address))[0];
  };

  test("an RTMP connection that names no stream is a row with the cause, and is not logged as a publish", async () => {
    const refused = { address: "192.0.2.1", code: "app", detail: "unknown application" };
    stage.gateway.publishing.handle({ kind: "connection_refused", ...refused });
    expect(await rowWith("connection_refused", refused.address)).toMatchObject({
      ...{ request: "publish", protocol: "rtmp", name: null, organisation_id: "" },
      detail: "app: unknown application",
    });
    expect(stage.gateway.log()).not.toContain('"cause":"connection_refused"');
  });

  test("a link of /broadcast whose token is not valid any more is a row of its stream", async () => {
    await addStream(stage.gateway.db, "Ab1Cd-link", "created");
    const body = JSON.stringify({ token: await expired("Ab1Cd-link") });
    const headers = { "content-type": "application/json" };
    expect((await fetch(`${stage.http}/webcaster/stream`, { method: "POST", headers, body })).status).toBe(403);
    expect(await rowWith("token_expired", "127.0.0.1")).toMatchObject({
      stream_id: "stream Ab1Cd-link",
      protocol: "whip",
    });
  });

  test("a v5 socket beyond the limit of its address is a row", async () => {
    const address = "192.0.2.2";
    const clients: Awaited<ReturnType<typeof connectV5>>[] = [];
    const opened = async () => {
      const client = await connectV5(stage.http, 1, address).catch(() => null);
      if (client !== null) clients.push(client);
      return client !== null;
    };
    while (clients.length < 1_000 && (await opened()));
    expect(await rowWith("too_many_requests", address)).toMatchObject({ protocol: "v5", name: null });
    for (const client of clients) await client.close();
  });
});
