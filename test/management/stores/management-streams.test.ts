// Streams after their creation: tags, and the states of M11 as callers and publishes see them.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LiveSession } from "../../../ts/publish/live-sessions.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

const failure = (code: number, message: string, userinfo: object = {}) => ({ error: { code, message, userinfo } });
const UNKNOWN = { status: 404, body: failure(3001, "Unknown stream") };

interface Stream {
  readonly id: string;
  readonly state: string;
  readonly tags: readonly string[];
  readonly updated_at: string;
  readonly ingest: { readonly rtmp: { readonly streamname: string } };
}

async function newStream(tags: readonly string[] = []): Promise<Stream> {
  return (await gateway.call("POST", "/stream", { body: { tags } })).body as Stream;
}

async function put(stream: Stream, what: string, body?: unknown) {
  const { status, body: answer } = await gateway.call("PUT", `/stream/${stream.id}/${what}`, { body });
  return { status, body: answer };
}

async function setState(stream: Stream, state: "live" | "ended"): Promise<void> {
  await gateway.db.updateTable("stream").set({ state }).where("id", "=", stream.id).execute();
}

test("tags are replaced, exactly as given", async () => {
  const stream = await newStream(["old"]);
  gateway.clock.ms += 1_000;
  const tags = ["b", "a", "a", "🎥"];
  const expected = { ...stream, tags, updated_at: "2026-01-01T00:00:01.000Z" };
  expect(await put(stream, "tag", { tags })).toStrictEqual({ status: 200, body: expected });
  expect((await gateway.call("GET", `/stream/${stream.id}`)).body).toStrictEqual(expected);
  expect((await put(stream, "tag", { tags: [] })).body).toMatchObject({ tags: [] });
});

test.each<[body: unknown, refusal: object]>([
  [{}, failure(1002, "Parameter required: tags", { required_parameter: "tags" })],
  [{ tags: "a" }, failure(1004, "Wrong Data Type: tags", { parameter: "tags", type: "array of string" })],
  [
    { tags: Array(51).fill("a") },
    failure(9002, "Invalid value: tags must be at most 50", { parameter: "tags", reason: "must be at most 50" }),
  ],
  ["{", failure(9000, "Malformed JSON")],
])("tags of %j are refused and the old ones stay", async (body, refusal) => {
  const stream = await newStream(["old"]);
  expect(await put(stream, "tag", body)).toStrictEqual({ status: 400, body: refusal });
  expect((await gateway.call("GET", `/stream/${stream.id}`)).body).toStrictEqual(stream);
});

test.each(["stop", "lock"])("%s ends the publish, and unlock restores the previous state", async (how) => {
  for (const [before, after] of [
    ["created", "created"],
    ["ended", "ended"],
    ["live", "ended"],
  ] as const) {
    const stream = await newStream();
    if (before !== "created") await setState(stream, before);
    expect(await put(stream, how)).toMatchObject({ status: 200, body: { id: stream.id, state: "locked" } });
    expect(await put(stream, how)).toMatchObject({ status: 200, body: { state: "locked" } });
    expect(gateway.live.calls).toContain(`kick ${stream.id} Stream was ${how === "stop" ? "stopped" : "locked"}`);
    expect((await gateway.call("GET", "/stream?state=locked")).body).toHaveLength(1);
    expect(await put(stream, "unlock")).toMatchObject({ status: 200, body: { state: after } });
    expect(await put(stream, "unlock")).toMatchObject({ status: 200, body: { state: after } });
  }
});

test("unlock does not affect a live stream", async () => {
  const stream = await newStream();
  await setState(stream, "live");
  expect(await put(stream, "unlock")).toMatchObject({ status: 200, body: { state: "live" } });
  expect(gateway.live.calls).toEqual([]);
});

test("a deleted stream is returned once more and then unknown, and its name remains taken", async () => {
  const stream = await newStream();
  const { status, body } = await gateway.call("DELETE", `/stream/${stream.id}`);
  expect({ status, body }).toStrictEqual({ status: 200, body: { ...stream, state: "deleted" } });
  expect(gateway.live.calls).toEqual([`kick ${stream.id} Stream was deleted`]);
  for (const what of ["stop", "lock", "unlock", "tag"]) {
    expect(await put(stream, what, { tags: [] })).toStrictEqual(UNKNOWN);
  }
  expect(await gateway.call("DELETE", `/stream/${stream.id}`)).toMatchObject(UNKNOWN);
  expect((await gateway.call("GET", "/stream")).body).toStrictEqual([]);
  const rows = await gateway.db.selectFrom("stream").select(["name", "state"]).execute();
  expect(rows).toStrictEqual([{ name: stream.ingest.rtmp.streamname, state: "deleted" }]);
});

function sessionOf(stream: Stream, clientId: number, organisationId = gateway.organisation.id): LiveSession {
  return {
    clientId,
    organisationId,
    streamId: stream.id,
    name: stream.ingest.rtmp.streamname,
    protocol: "whip",
    address: "203.0.113.9",
    acceptedAt: gateway.clock.ms,
    continues: null,
    backup: false,
    onAir: true,
    timestampMs: 2_000,
    bytesIn: 3_000,
    bytesOut: 6_000,
    droppedFrames: 1,
    subscribers: 2,
    findings: [],
    maxBitrateKbps: 6_000,
    tracks: { video: { codec: "h264", width: 1280, height: 720 }, audio: null },
    upstreams: [
      {
        id: "7",
        label: "Main",
        url: "rtmp://up.example:1935/live",
        maskedKey: "ab…",
        source: "session",
        state: "sending",
        since: gateway.clock.ms,
        lastError: null,
        lastCause: null,
        bytesOut: 10,
        droppedFrames: 0,
        reconnects: 0,
        audioError: "It gets no audio",
      },
    ],
    transcoderError: "The audio cannot be transcoded",
    irregularities: [{ code: "time_step", count: 2 }],
    diagnostics: { isConnected: true, dtlsRole: "server", srtp: "AES-GCM", rttMs: 12, rejected: 0, problems: [] },
  };
}

test("live sessions are listed, shown with diagnostics, kicked and pushed elsewhere", async () => {
  const stream = await newStream();
  gateway.live.live.push(sessionOf(stream, 41));
  const record = {
    client_id: 41,
    stream: stream.id,
    streamname: stream.ingest.rtmp.streamname,
    protocol: "whip",
    address: "203.0.113.9",
    accepted_at: "2026-01-01T00:00:00.000Z",
    continues: null,
    backup: false,
    on_air: true,
    timestamp_ms: 2_000,
    bytes_in: 3_000,
    bytes_out: 6_000,
    dropped_frames: 1,
    subscribers: 2,
    max_bitrate_kbps: 6_000,
    tracks: { video: { codec: "h264", width: 1280, height: 720 }, audio: null },
    upstreams: [
      {
        id: "7",
        label: "Main",
        url: "rtmp://up.example:1935/live",
        masked_key: "ab…",
        source: "session",
        state: "sending",
        since: "2026-01-01T00:00:00.000Z",
        last_error: null,
        last_cause: null,
        bytes_out: 10,
        dropped_frames: 0,
        reconnects: 0,
        audio_error: "It gets no audio",
      },
    ],
    transcoder_error: "The audio cannot be transcoded",
    findings: [],
  };
  expect((await gateway.call("GET", "/session")).body).toStrictEqual([record]);
  const shown = await gateway.call("GET", "/session/41");
  expect(shown.body).toStrictEqual({
    ...record,
    numbers: { bitrate_kbps: null, fps: null, gop_ms: null, loss_percent: null, rtt_ms: null, skew_ms: null },
    players: [{ address: "192.0.2.7", since: "1970-01-01T00:00:00.000Z", bytes_out: 20, dropped_frames: 1 }],
    irregularities: [
      {
        code: "time_step",
        count: 2,
        text: "The encoder's clock restarted or jumped: the stream continued without the step.",
      },
    ],
    diagnostics: { is_connected: true, dtls_role: "server", srtp: "AES-GCM", rtt_ms: 12, rejected: 0, problems: [] },
  });
  const add = (body: unknown) => gateway.call("POST", "/session/41/upstream", { body });
  expect(await add({ url: "rtmp://b.example/live/key" })).toMatchObject({ status: 200, body: record });
  const labelled = { url: "rtmp://b.example/live/key", label: " Backup " };
  expect(await add(labelled)).toMatchObject({ status: 200, body: record });
  expect(await add({ ...labelled, label: "a\nb" })).toMatchObject({ status: 400, body: { error: { code: 9002 } } });
  expect(await add({})).toMatchObject({ status: 400, body: { error: { code: 1002 } } });
  expect(await add({ url: 1 })).toMatchObject({ status: 400, body: { error: { code: 1004 } } });
  expect(await add({ url: "http://b" })).toMatchObject({ status: 400, body: { error: { code: 9002 } } });
  expect(await gateway.call("DELETE", "/session/41/upstream/7")).toMatchObject({ status: 200, body: record });
  const noUpstream = { status: 404, body: failure(9420, "Unknown upstream") };
  expect(await gateway.call("DELETE", "/session/41/upstream/8")).toMatchObject(noUpstream);
  expect(await gateway.call("POST", "/session/41/kick")).toMatchObject({ status: 200, body: record });
  const kick = (reason: unknown) => gateway.call("POST", "/session/41/kick", { body: { reason } });
  expect(await kick("Off air")).toMatchObject({ status: 200, body: record });
  expect(await kick("ü")).toMatchObject({ status: 400, body: { error: { code: 9002 } } });
  expect(gateway.live.calls).toStrictEqual([
    "addUpstream 41 rtmp://b.example/live/key",
    "addUpstream 41 rtmp://b.example/live/key (Backup)",
    "removeUpstream 41 7",
    "kick 41 Publish was ended by the operator",
    "kick 41 Off air",
  ]);
});

test("sessions of other organisations are unknown, like those that never existed", async () => {
  const other = await gateway.newOrganisation("Second");
  const stream = (await gateway.call("POST", "/stream", { key: other.keys.administrator })).body as Stream;
  gateway.live.live.push(sessionOf(stream, 42, other.organisation.id));
  const unknown = { status: 404, body: failure(9007, "Unknown session") };
  expect((await gateway.call("GET", "/session")).body).toStrictEqual([]);
  for (const id of ["42", "43", "x", "%00", "9".repeat(40)]) {
    expect(await gateway.call("GET", `/session/${id}`)).toMatchObject(unknown);
    expect(await gateway.call("POST", `/session/${id}/kick`)).toMatchObject(unknown);
    const body = { url: "rtmp://b.example/live/key" };
    expect(await gateway.call("POST", `/session/${id}/upstream`, { body })).toMatchObject(unknown);
    expect(await gateway.call("DELETE", `/session/${id}/upstream/7`)).toMatchObject(unknown);
  }
  expect(gateway.live.calls).toEqual([]);
});
