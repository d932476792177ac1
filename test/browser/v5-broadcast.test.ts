// The socket of the deprecated v5 signalling, frame by frame (docs/v5.md): a running broadcast, how it ends, and
// limits.
import { request } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { connectV5, type V5Client } from "../support/v5-client.ts";
import { OUTPUT, openV5Stage, type V5Stage, wanted } from "../support/v5-stage.ts";

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

describe("signaling_message", () => {
  test("accepts candidates and the answer, which is passed to the media core unchanged", async () => {
    const { parties, clientId } = await stage.started(client);
    const data = { sdpMLineIndex: 0, sdpMid: "0", candidate: "candidate:1 1 udp 1 192.0.2.1 5 typ host" };
    expect(await client.call("signaling_message", { ...parties, data })).toStrictEqual({ message_id: 9 });
    const reply = await client.call("signaling_message", { ...parties, data: { type: "answer", sdp: "v=0\r\nx" } });
    expect(reply).toStrictEqual({ message_id: 10 });
    expect(stage.gateway.media.commands).toContainEqual({ command: "answer_whip", clientId, answer: "v=0\r\nx" });
  });

  test("with an unusable answer ends the broadcast, which the client is told by an error number", async () => {
    const { parties, clientId } = await stage.started(client);
    const { error } = await client.call("signaling_message", { ...parties, data: { type: "answer", sdp: "no" } });
    expect(error).toMatchObject({ code: 101003, userinfo: { reason: "offer_malformed" } });
    expect(stage.isEnded(clientId)).toBe(true);
    stage.gateway.end(clientId);
    expect(await client.push("rtmp_status")).toMatchObject({
      receiver_peer: parties.sender_peer,
      data: { status: "error", number: 4711 },
    });
  });

  test("out of order, malformed or for another peer is refused", async () => {
    const answer = { type: "answer", sdp: "v=0\r\n" };
    expect((await client.call("signaling_message", { data: answer })).error?.code).toBe(107001);
    const { parties } = await stage.started(client);
    const table: [object, number][] = [
      [{ ...parties }, 101002],
      [{ ...parties, data: {} }, 101003],
      [{ ...parties, data: { type: "offer", sdp: "v=0" } }, 101003],
      [{ sender_peer: "a", receiver_peer: "b", data: answer }, 107002],
    ];
    for (const [message, code] of table) {
      expect((await client.call("signaling_message", message)).error?.code, JSON.stringify(message)).toBe(code);
    }
  });
});

describe("rtmp_status", () => {
  test("is connected once ICE and DTLS are done, and reconnecting while the output is lost", async () => {
    const { clientId, parties } = await stage.started(client);
    stage.gateway.media.connected.add(clientId);
    const status = (message: string) => ({
      type: "rtmp_status",
      sender_peer: parties.receiver_peer,
      receiver_peer: parties.sender_peer,
      data: { status: "status", message },
    });
    expect(await client.push("rtmp_status")).toStrictEqual(status("connected"));
    const own = {
      id: "own",
      url: OUTPUT,
      source: "own",
      since: 0,
      bytesOut: 0,
      droppedFrames: 0,
      reconnects: 0,
    } as const;
    stage.gateway.media.measure(clientId, {
      upstreams: [{ ...own, state: "waiting", lastError: "closed", lastCause: "closed" }],
    });
    expect(await client.push("rtmp_status")).toStrictEqual(status("reconnecting"));
    stage.gateway.media.measure(clientId, {
      upstreams: [{ ...own, state: "sending", lastError: "closed", lastCause: "closed" }],
    });
    expect(await client.push("rtmp_status")).toStrictEqual(status("connected"));
  });

  test("has an error number, and who ended the publish and why, when it was the service; the socket stays open", async () => {
    const { clientId, session } = await stage.started(client);
    stage.gateway.end(clientId, "kicked");
    expect((await client.push("rtmp_status")).data).toStrictEqual({
      ...{ status: "error", number: 4711 },
      ended: {
        ...{ code: "ended_by_person", title: "Ended by a person", ended_by: "person" },
        ...{ reason: "Publish was ended by the operator", final: true },
      },
    });
    const { peer_id } = await client.call("start_broadcast", wanted(session));
    expect(peer_id).toEqual(expect.stringMatching(/./));
  });
});

describe("the rest", () => {
  test("send_metadata is passed to the stream's subscribers", async () => {
    const { parties } = await stage.started(client);
    const data = { eventType: "metaData", eventName: "onMetaData", payload: { title: "x" }, strLabel: "y" };
    expect(await client.call("send_metadata", { ...parties, data })).toStrictEqual({ message_id: 9 });
    expect(stage.gateway.media.commands.at(-1)).toMatchObject({
      command: "send_whip_data",
      data: expect.stringContaining("title"),
    });
    for (const wrongData of [
      { ...data, eventName: "other" },
      { ...data, payload: [1] },
      { ...data, payload: null },
    ]) {
      expect((await client.call("send_metadata", { ...parties, data: wrongData })).error?.code).toBe(101003);
    }
  });

  test("stop_broadcast ends the publish without an error push; the next broadcast has another peer", async () => {
    const { parties, session, clientId } = await stage.started(client);
    expect(await client.call("stop_broadcast", { session_id: session, ...parties })).toStrictEqual({ message_id: 9 });
    expect(stage.isEnded(clientId)).toBe(true);
    stage.gateway.end(clientId);
    const { peer_id } = await client.call("start_broadcast", wanted(session));
    expect(peer_id).not.toBe(parties.sender_peer);
    expect(client.messages.filter(({ type }) => type === "rtmp_status")).toStrictEqual([]);
  });

  test("stop_broadcast succeeds, once, after the client's connection has already ended it", async () => {
    const { parties, session, clientId } = await stage.started(client);
    stage.gateway.end(clientId);
    expect(await client.call("stop_broadcast", { session_id: session, ...parties })).toStrictEqual({ message_id: 9 });
    expect((await client.call("stop_broadcast", { session_id: session, ...parties })).error?.code).toBe(107002);
  });

  test("sign_out ends the broadcast and the session, and the socket stays open", async () => {
    const { session, clientId } = await stage.started(client);
    expect(await client.call("sign_out", { session_id: session })).toStrictEqual({ message_id: 9 });
    expect(stage.isEnded(clientId)).toBe(true);
    expect((await client.call("echo", { session_id: session, message: 1 })).error?.code).toBe(107001);
    await client.signIn({ jwt: await stage.newToken() });
  });

  test("a closed socket ends the broadcast", async () => {
    const { clientId } = await stage.started(client);
    await client.close();
    await until("it is ended", () => stage.isEnded(clientId));
  });

  test("status and echo return their data", async () => {
    const session = await client.signIn({ jwt: await stage.newToken() });
    expect(await client.call("echo", { session_id: session, message: "hi" })).toStrictEqual({
      message_id: 8,
      data: "hi",
    });
    expect(await client.call("status", { data: '{"a":1}' })).toStrictEqual({ message_id: 9, data: { a: 1 } });
    expect(await client.call("status", { data: { a: 2 } })).toStrictEqual({ message_id: 10, data: { a: 2 } });
  });

  test("an unknown type, a frame without an id and one that is not JSON are answered with an error", async () => {
    expect((await client.call("transmogrify", {})).error).toMatchObject({
      code: 101001,
      userinfo: { type: "transmogrify" },
    });
    for (const frame of ["{", "[]", "null", '{"type":"echo"}', '{"type":"echo","message_id":{}}', Buffer.from([1])]) {
      const before = client.messages.length;
      client.raw(frame);
      const reply = await until("an answer", () => client.messages[before]);
      expect(reply.message_id).toBeNull();
      expect([101002, 101003]).toContain(reply.error?.code);
    }
  });
});

describe("limits", () => {
  test("a frame over 64 KiB closes the socket, and so do hundreds of messages", async () => {
    client.raw(JSON.stringify({ type: "echo", message_id: 1, message: { message: "x".repeat(65_536) } }));
    expect(await client.closed()).toBe(1009);
    const flood = await connectV5(stage.http);
    for (let n = 0; n < 300; n += 1) flood.raw("{");
    expect(await flood.closed()).toBe(1008);
  });

  test("the 101st socket of an address is refused with 429", async () => {
    const others = await Promise.all(Array.from({ length: 99 }, () => connectV5(stage.http)));
    await expect(connectV5(stage.http)).rejects.toThrow("answered 429");
    await Promise.all(others.map((other) => other.close()));
    await until(
      "there is room again",
      async () =>
        await connectV5(stage.http).then(
          (again) => again.close().then(() => true),
          () => false,
        ),
    );
  });

  test("a plain request gets 426, and one that offers another protocol is served as if it had not", async () => {
    expect((await fetch(`${stage.http}/p/webrtcws`)).status).toBe(426);
    const body = JSON.stringify({ token: "none" });
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const headers = {
        connection: "Upgrade, HTTP2-Settings",
        upgrade: "h2c",
        "http2-settings": "AAMAAABk",
        "content-type": "application/json",
      };
      const asked = request(`${stage.http}/webcaster/verify`, { method: "POST", headers }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      asked.once("error", reject);
      asked.end(body);
    });
    expect(status).toBe(403);
  });
});
