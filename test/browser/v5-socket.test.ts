// The socket of the deprecated v5 signalling, frame by frame (docs/v5.md): signing in, and how a broadcast
// begins.
import { Agent, get } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { STREAM } from "../support/publishing.ts";
import { connectV5, type V5Client } from "../support/v5-client.ts";
import { OTHER_STREAM, openV5Stage, type V5Stage, wanted } from "../support/v5-stage.ts";

let stage: V5Stage;
let client: V5Client;

beforeAll(async () => {
  stage = await openV5Stage();
});
beforeEach(async () => {
  stage.gateway.customer.answer({ status: 200 });
  client = await connectV5(stage.http);
});
afterEach(async () => {
  await client.close();
  await stage.endAll();
});
afterAll(async () => {
  await stage?.close();
});

describe("sign_in", () => {
  test("with a token gets a flat reply with its id, a session, a decimal user and the ICE servers", async () => {
    const reply = await client.call("sign_in", {
      jwt: await stage.newToken(),
      user_name: "x",
      room: "y",
      api_version: "5",
    });
    expect(reply).toStrictEqual({
      message_id: 7,
      session_id: expect.stringMatching(/^.{36}$/),
      user_id: expect.stringMatching(/^\d+$/),
      ice_servers: [
        { urls: "stun:stun.example:3478" },
        { urls: "turn:turn.example:3478", username: expect.any(String), credential: expect.any(String) },
      ],
    });
  });

  test("accepts a token unencoded, as JSON text and percent-encoded", async () => {
    const jwt = await stage.newToken();
    const encoded = [jwt, JSON.stringify(jwt), JSON.stringify({ jwt }), encodeURIComponent(JSON.stringify({ jwt }))];
    for (const token of encoded) expect((await client.call("sign_in", { token })).error).toBeUndefined();
  });

  test("accepts an API key under both of its names", async () => {
    for (const name of ["bintu_api_key", "service_api_key"]) {
      expect((await client.call("sign_in", { [name]: stage.apiKey })).error).toBeUndefined();
    }
  });

  test("reports by an error number what is wrong with the credentials", async () => {
    const now = stage.gateway.tokens.now();
    const expired = await stage.newToken({ exp: now + 60 });
    stage.gateway.clock.ms += 61_000;
    const forged = (await stage.newToken()).replace(/\.[^.]*$/, `.${"A".repeat(86)}`);
    const table: [object, number, string][] = [
      [{}, 103000, "AuthenticationError"],
      [{ bintu_api_key: "" }, 104001, "BintuError"],
      [{ bintu_api_key: "wrong" }, 104002, "BintuError"],
      [{ jwt: expired }, 103002, "AuthenticationError"],
      [{ jwt: forged }, 103003, "AuthenticationError"],
      [{ jwt: stage.apiKey }, 103003, "AuthenticationError"],
      [{ jwt: 5 }, 101003, "GeneralError"],
    ];
    for (const [credentials, code, name] of table) {
      const { error } = await client.call("sign_in", credentials);
      expect(error, JSON.stringify(credentials)).toMatchObject({ type: "NanoError", name, code });
      expect(Object.keys(error ?? {})).toStrictEqual(["type", "name", "code", "message", "userinfo"]);
    }
  });
});

describe("start_broadcast", () => {
  test("is answered after the customer's 200, followed by transcoder, offer and candidates, in this order", async () => {
    const session = await client.signIn({ jwt: await stage.newToken() });
    const asked = client.messages.length;
    const reply = await client.call("start_broadcast", wanted(session));
    expect(reply).toStrictEqual({ message_id: 8, peer_id: expect.stringMatching(/./) });
    expect(stage.gateway.customer.calls("publish").at(-1)?.body).toContain(`name=${STREAM}&app=live&addr=127.0.0.1`);
    const offer = await client.push("sdp_message");
    const pushes = client.messages.slice(asked + 1);
    expect(pushes.slice(0, 2)).toStrictEqual([
      { type: "transcoder_message", sender_peer: offer.sender_peer, receiver_peer: reply.peer_id, state: "started" },
      {
        type: "sdp_message",
        sender_peer: expect.stringMatching(/./),
        receiver_peer: reply.peer_id,
        data: { sdp: { type: "offer", sdp: "v=0\r\n" } },
      },
    ]);
    expect(pushes.every((push) => !("message_id" in push))).toBe(true);
  });

  test("asks the media core for the requested media and bitrates", async () => {
    const more = { audio: "0", videobitrate: "700000", audiobitrate: "96000", rtmpconnectinfo: '{"a":1}' };
    await stage.started(client, more);
    const { offer, startBitrateKbps, audioBitrate, connectInfo, ...opening } = stage.gateway.openings().at(-1) ?? {};
    expect(offer).toMatchObject({ audio: false, video: true });
    expect({ startBitrateKbps, audioBitrate, ...opening }).toMatchObject({
      startBitrateKbps: 700,
      audioBitrate: 96_000,
      name: STREAM,
      ownUpstream: null,
    });
    expect(Buffer.from(connectInfo ?? []).toString("latin1")).toContain("\0\x01a");
  });

  test("with an API key sends its name and custom arguments byte for byte", async () => {
    const session = await client.signIn({ service_api_key: stage.apiKey });
    await client.call("start_broadcast", wanted(session, { streamname: `${STREAM}?passcode=s%2Fx&b=1` }));
    expect(stage.gateway.customer.calls("publish").at(-1)?.body).toMatch(/^passcode=s%2Fx&b=1&call=publish&name=/);
  });

  test("accepts the token's stream and output, and refuses others", async () => {
    const session = await client.signIn({ service_api_key: stage.apiKey });
    const jwt = await stage.newToken();
    const otherToken = await stage.newToken({ streamname: OTHER_STREAM });
    const table: [object, number][] = [
      [{ jwt, streamname: OTHER_STREAM }, 103004],
      [{ jwt, output: "rtmp://elsewhere.example/live" }, 103004],
      [{ jwt: otherToken, streamname: "" }, 103004],
      [{ jwt: "none" }, 103003],
      [{ streamname: OTHER_STREAM }, 102001],
      [{ output: "" }, 101002],
      [{ output: "rtmp://elsewhere.example/live" }, 109000],
      [{ audio: "0", video: "0" }, 101003],
      [{ audio: "yes" }, 101003],
      [{ rtmpconnectinfo: "[]" }, 101003],
      [{ session_id: "other" }, 107002],
      [{ session_id: undefined }, 107001],
    ];
    for (const [more, code] of table) {
      const { error, peer_id } = await client.call("start_broadcast", wanted(session, more));
      expect([error?.code, peer_id], JSON.stringify(more)).toStrictEqual([code, undefined]);
    }
    const { session_id: _, ...absent } = wanted(session, { jwt, streamname: undefined, output: undefined });
    expect((await client.call("start_broadcast", { ...absent, session_id: session })).error).toBeUndefined();
  });

  test("returns the customer's reason for a refusal, and starts no broadcast", async () => {
    const session = await client.signIn({ jwt: await stage.newToken() });
    stage.gateway.customer.answer({
      status: 403,
      body: "Your plan is over\n",
      headers: { "content-type": "text/plain" },
    });
    const { error } = await client.call("start_broadcast", wanted(session));
    expect(error).toMatchObject({ name: "AccessError", code: 102001, message: "Your plan is over" });
    expect((await client.call("stop_broadcast", { session_id: session })).error?.code).toBe(107002);
  });

  test("is refused while a broadcast runs on the same socket or under the same name", async () => {
    const { session } = await stage.started(client);
    expect((await client.call("start_broadcast", wanted(session))).error?.code).toBe(102001);
    const second = await connectV5(stage.http);
    const other = await second.signIn({ jwt: await stage.newToken() });
    const { error } = await second.call("start_broadcast", wanted(other));
    expect(error).toMatchObject({ code: 102001, message: "Stream is already live" });
    await second.close();
  });

  test("of a client that leaves while the customer is asked is accepted and ended", async () => {
    const session = await client.signIn({ jwt: await stage.newToken() });
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    stage.gateway.customer.answer(async () => {
      await answered;
      return { status: 200 };
    });
    const asked = stage.gateway.customer.calls("publish").length;
    const opened = stage.gateway.openings().length;
    client.raw(JSON.stringify({ type: "start_broadcast", message_id: 99, message: wanted(session) }));
    await until("the customer is asked", () => stage.gateway.customer.calls("publish").length > asked);
    await client.close();
    answer();
    await until("it was opened", () => stage.gateway.openings().length > opened);
    await until("it is ended", () => stage.isEnded(stage.gateway.openings().at(-1)?.clientId ?? -1));
  });

  test("is logged once a day for each organisation", async () => {
    const lines = () => stage.gateway.log().split("deprecated v5 signalling").length - 1;
    const { session } = await stage.started(client);
    const before = lines();
    expect(before).toBeGreaterThan(0);
    await client.call("stop_broadcast", { session_id: session });
    await stage.endAll();
    await client.call("start_broadcast", wanted(session));
    expect(lines()).toBe(before);
    stage.gateway.clock.ms += 86_400_000;
    await client.call("stop_broadcast", { session_id: session });
    await stage.endAll();
    await client.call("start_broadcast", wanted(session));
    expect(lines()).toBe(before + 1);
  });
});

test("requests without an upgrade take no place of a socket, however many arrive on a connection", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const statusOf = async (headers: Readonly<Record<string, string>>) =>
    await new Promise<number | undefined>((resolve, reject) => {
      get(`${stage.http}/p/webrtcws`, { agent, headers }, (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      }).once("error", reject);
    });
  try {
    // As many as one address may have sockets.
    for (let times = 0; times < 100; times += 1) expect(await statusOf({})).toBe(426);
    expect(await statusOf({ upgrade: "websocket" })).toBe(426);
    const another = await connectV5(stage.http);
    await another.close();
  } finally {
    agent.destroy();
  }
});
