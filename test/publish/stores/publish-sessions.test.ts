// Live sessions as an operator sees and controls them, and how a stream's own upstreams reach its publishes.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { UpstreamStatus, WhipDiagnostics } from "../../../ts/media.ts";
import { endingOf } from "../../../ts/publish/ending/ending.ts";
import { createLiveSessions, type LiveSessions } from "../../../ts/publish/live-sessions.ts";
import { addStream, openStage, STREAM, type Stage } from "../../support/publishing.ts";

/** The id that `addStream` makes. */
const STREAM_ID = `stream ${STREAM}`;

let stage: Stage;
let sessions: LiveSessions;

beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
  sessions = createLiveSessions({
    publishing: stage.publishing,
    media: () => stage.media,
    clock: Date,
    findingsOf: () => [],
    dev: false,
  });
});
afterEach(() => stage.close());

/** Where an entry in the audit log is not the subject. */
const recorded = async () => {};
const told = (what: string) => stage.media.commands.filter((each) => each.command === what);

const ALL = { after: 0, quantity: 1_000, isMeant: () => true };
/** As a snapshot shows it: two of one host and app look the same. */
const upstream = (id: string, source: UpstreamStatus["source"]): UpstreamStatus => ({
  id,
  url: "rtmp://93.184.216.34:1935/live",
  source,
  state: "sending",
  since: 0,
  lastError: null,
  lastCause: null,
  bytesOut: 0,
  droppedFrames: 0,
  reconnects: 0,
});

describe("a running publish", () => {
  test("is listed with what the media core counts, oldest first, until it ends", async () => {
    await addStream(stage.db, "Ab1Cd-other", "created");
    const [first, second] = [await stage.allowed(STREAM), await stage.allowed("Ab1Cd-other")];
    stage.media.measure(first, { bytesIn: 5, timestampMs: 40 });
    expect(sessions.list("org1", ALL).map(({ clientId }) => clientId)).toEqual([first, second]);
    const one = { ...ALL, quantity: 1 };
    expect(sessions.list("org1", one).map(({ clientId }) => clientId)).toEqual([first]);
    expect(sessions.list("org1", { ...one, after: first }).map(({ clientId }) => clientId)).toEqual([second]);
    expect(sessions.list("org1", { ...ALL, isMeant: () => false })).toEqual([]);
    expect(sessions.show("org1", first)).toEqual({
      clientId: first,
      organisationId: "org1",
      streamId: STREAM_ID,
      name: STREAM,
      protocol: "rtmp",
      address: "203.0.113.7",
      acceptedAt: stage.clock.ms,
      continues: null,
      backup: false,
      onAir: true,
      maxBitrateKbps: 0,
      timestampMs: 40,
      bytesIn: 5,
      bytesOut: 0,
      droppedFrames: 0,
      subscribers: 0,
      tracks: { video: null, audio: null },
      upstreams: [],
      transcoderError: null,
      irregularities: [],
      findings: [],
    });
    stage.end(first);
    await expect.poll(() => sessions.list("org1", ALL)).toHaveLength(1);
    expect(sessions.show("org1", first)).toBeUndefined();
  });

  test("says that its audio cannot be transcoded, and so does each of its upstreams", async () => {
    const clientId = await stage.allowed(STREAM);
    const upstream = {
      id: "1",
      url: "rtmp://up.example:1935/live",
      source: "session",
      state: "sending",
      since: 0,
      lastError: null,
      lastCause: null,
      bytesOut: 0,
      droppedFrames: 0,
      reconnects: 0,
    } as const;
    stage.media.measure(clientId, { upstreams: [upstream], transcoderError: "no AAC encoder could be made" });
    expect(sessions.show("org1", clientId)).toMatchObject({
      transcoderError:
        "The audio cannot be transcoded to AAC (no AAC encoder could be made): players and upstreams that do not accept Opus get video without audio",
      upstreams: [
        {
          lastError: null,
          lastCause: null,
          audioError:
            "It gets no audio of this stream unless it accepts Opus: transcoding to AAC failed (no AAC encoder could be made)",
        },
      ],
    });
    stage.media.measure(clientId, { transcoderError: null });
    expect(sessions.show("org1", clientId)).toMatchObject({ transcoderError: null, upstreams: [{ audioError: null }] });
  });

  test("has the same among the problems of its diagnostics when it is a WHIP publish", async () => {
    const request = {
      app: "live",
      name: Buffer.from(STREAM),
      arguments: null,
      address: "203.0.113.7",
      session: "session",
    };
    const opened = await stage.publishing.admit({ ...request, protocol: "whip" });
    if (opened.outcome === "denied") throw new Error(opened.cause);
    await opened.start(() => "v=0\r\n");
    const { clientId } = opened.publish;
    const diagnostics = { problems: ["Loss of 10 %"] } as unknown as WhipDiagnostics;
    const media = Object.assign(Object.create(stage.media), { whipDiagnostics: () => diagnostics });
    sessions = createLiveSessions({
      publishing: stage.publishing,
      media: () => media,
      clock: Date,
      findingsOf: () => [],
      dev: false,
    });
    const problems = () => sessions.show("org1", clientId)?.diagnostics?.problems;
    stage.media.measure(clientId, {});
    expect(problems()).toEqual(["Loss of 10 %"]);
    stage.media.measure(clientId, { transcoderError: "no AAC encoder could be made" });
    expect(problems()).toEqual(["Loss of 10 %", expect.stringContaining("cannot be transcoded to AAC")]);
  });

  test("belongs to one organisation: another neither sees nor controls it", async () => {
    const clientId = await stage.allowed(STREAM);
    expect(sessions.list("org2", ALL)).toEqual([]);
    expect(sessions.show("org2", clientId)).toBeUndefined();
    expect(sessions.kick("org2", { clientId }, endingOf("ended_by_api"))).toBe(false);
    expect(sessions.kick("org2", { streamId: STREAM_ID }, endingOf("ended_by_api"))).toBe(false);
    expect(
      await sessions.addUpstream("org2", clientId, { url: "rtmp://93.184.216.34/live/key", label: null }, recorded),
    ).toBe(false);
    stage.media.measure(clientId, { upstreams: [upstream("1", "session")] });
    expect(sessions.removeUpstream("org2", clientId, "1")).toBe("unknown");
    expect(stage.media.commands.map((each) => each.command)).toEqual(["allow"]);
  });

  test("is kicked by its client id or by its stream", async () => {
    const clientId = await stage.allowed(STREAM);
    expect(sessions.kick("org1", { clientId }, endingOf("ended_by_api", "Enough"))).toBe(true);
    expect(sessions.kick("org1", { streamId: STREAM_ID }, endingOf("ended_by_api", "Locked"))).toBe(true);
    expect(told("end")).toEqual([
      { command: "end", clientId, reason: "kicked", description: "Enough" },
      { command: "end", clientId, reason: "kicked", description: "Locked" },
    ]);
    expect(sessions.kick("org1", { clientId: clientId + 1 }, endingOf("ended_by_api"))).toBe(false);
  });

  test("gets and loses upstreams", async () => {
    const clientId = await stage.allowed(STREAM);
    const url = "rtmp://93.184.216.34/live/key?token=1";
    expect(await sessions.addUpstream("org1", clientId, { url, label: null }, recorded)).toBe(true);
    const [added] = told("add_upstream");
    expect(added).toMatchObject({ clientId, url, source: "session", id: expect.stringMatching(/^[\da-f-]{36}$/) });
    stage.media.measure(clientId, { upstreams: [upstream("1", "session"), upstream("2", "stream")] });
    expect(sessions.removeUpstream("org1", clientId, "2")).toBe("removed");
    expect(sessions.removeUpstream("org1", clientId, "3")).toBe("unknown");
    expect(told("remove_upstream")).toEqual([{ command: "remove_upstream", clientId, id: "2" }]);
  });

  test("gets an upstream only after it is recorded, and records none that is refused", async () => {
    const clientId = await stage.allowed(STREAM);
    const [url, refused] = ["rtmp://93.184.216.34/live/key", "rtmp://127.0.0.1/live/key"];
    let attempts = 0;
    const failing = async () => {
      attempts += 1;
      throw new Error("the store is gone");
    };
    await expect(sessions.addUpstream("org1", clientId, { url: refused, label: null }, failing)).rejects.toThrow();
    expect(attempts).toBe(0);
    await expect(sessions.addUpstream("org1", clientId, { url, label: null }, failing)).rejects.toThrow("is gone");
    expect([attempts, told("add_upstream")]).toEqual([1, []]);
    expect(await sessions.addUpstream("org1", clientId, { url, label: null }, recorded)).toBe(true);
    expect(told("add_upstream")).toHaveLength(1);
  });

  test("shows upstreams of one host and app by id, label and the beginning of their keys", async () => {
    const url = (key: string) => `rtmp://me:word@93.184.216.34/live/${key}?token=1`;
    const main = { url: url("main-key-0001"), label: "Main" };
    const { id: stored } = await stage.streamUpstreams.add(stage.db, "org1", STREAM_ID, main, 1);
    const clientId = await stage.allowed(STREAM);
    await sessions.addUpstream("org1", clientId, { url: url("backup-key-1"), label: "Backup" }, recorded);
    const added = String((told("add_upstream")[0] as { id?: string } | undefined)?.id);
    sessions.followStream("org1", STREAM_ID, {
      added: { id: "later", url: url("1234567"), label: null, paused: false },
    });
    const upstreams = [upstream(stored, "stream"), upstream(added, "session"), upstream("later", "stream")];
    stage.media.measure(clientId, { upstreams: [...upstreams, upstream("own", "own")] });
    const shown = sessions.upstreamsOf("org1", STREAM_ID);
    expect(shown.map(({ id, label, maskedKey }) => [id, label, maskedKey])).toEqual([
      [stored, "Main", "ma…"],
      [added, "Backup", "ba…"],
      ["later", null, "…"],
      ["own", null, `${STREAM.slice(0, 2)}…`],
    ]);
    expect(sessions.show("org1", clientId)?.upstreams).toEqual(shown);
    expect(sessions.upstreamsOf("org2", STREAM_ID)).toEqual([]);
    for (const secret of ["key", "word", "token", "34567"]) expect(JSON.stringify(shown)).not.toContain(secret);
  });

  test("logs which of its upstreams was lost", async () => {
    const clientId = await stage.allowed(STREAM);
    const lost = { upstreamId: "up-1", upstream: "93.184.216.34:1935", detail: "closed", cause: "closed" } as const;
    stage.publishing.handle({ kind: "upstream_changed", clientId, sending: false, ...lost });
    const line = JSON.parse(stage.log().trim().split("\n").at(-1) ?? "") as Record<string, unknown>;
    const stream = `stream ${STREAM}`;
    expect(line).toMatchObject({ msg: "upstream lost", clientId, organisation: "org1", stream, ...lost });
  });

  test("keeps the operator's upstreams, which no organisation can remove", async () => {
    const clientId = await stage.allowed(STREAM);
    stage.media.measure(clientId, { upstreams: [upstream("deployment-1", "deployment")] });
    expect(sessions.removeUpstream("org1", clientId, "deployment-1")).toBe("operators");
    expect(told("remove_upstream")).toEqual([]);
  });

  test.each([
    ["rtmp://127.0.0.1/live/key", "publicly reachable"],
    ["rtmps://[::1]:443/live/key", "publicly reachable"],
    ["rtmp://me:word@169.254.169.254/live/key", "publicly reachable"],
    ["http://93.184.216.34/live/key", "rtmp:// or rtmps://"],
    ["rtmp://93.184.216.34/live", "stream name"],
    ["rtmp://93.184.216.34/live/", "stream name"],
    ["rtmp://93.184.216.34:0/live/key", "port"],
    ["rtmp://93.184.216.34:65536/live/key", "port"],
    ["RTMP://93.184.216.34/live/key", "lower-case"],
    ["rtmp://a%ff@93.184.216.34/live/key", "percent-encoded"],
    ["rtmp://93.184.216.34/live/key#x", "fragment"],
    ["rtmp://93.184.216.34/live/key\r\nx", "control characters"],
    [`rtmp://93.184.216.34/live/${"k".repeat(2048)}`, "2048 bytes"],
  ])("does not get %s", async (url, reason) => {
    const clientId = await stage.allowed(STREAM);
    await expect(sessions.addUpstream("org1", clientId, { url, label: null }, recorded)).rejects.toMatchObject({
      code: "invalid_value",
      parameter: "url",
      reason: expect.stringContaining(reason),
    });
    expect(told("add_upstream")).toEqual([]);
  });
});

describe("a stream's own upstreams", () => {
  const url = "rtmps://me:word@upstream.example/app/key?token=1";

  test("are used by each of its publishes", async () => {
    const { id } = await stage.streamUpstreams.add(stage.db, "org1", STREAM_ID, { url, label: "Main" }, 1);
    expect(await stage.request(STREAM)).toMatchObject({ command: "allow", upstreams: [{ id, url, source: "stream" }] });
  });

  test("are applied to a running publish of the stream when they change, and to no other", async () => {
    await addStream(stage.db, "Ab1Cd-other", "created");
    await stage.allowed("Ab1Cd-other");
    const clientId = await stage.allowed(STREAM);
    sessions.followStream("org1", STREAM_ID, { added: { id: "7", url, label: null, paused: false } });
    sessions.followStream("org1", STREAM_ID, { removed: "7" });
    expect(told("add_upstream")).toEqual([{ command: "add_upstream", clientId, id: "7", url, source: "stream" }]);
    expect(told("remove_upstream")).toEqual([{ command: "remove_upstream", clientId, id: "7" }]);
  });

  test("pause and resume in a running publish, and are given to the next one as they are", async () => {
    const clientId = await stage.allowed(STREAM);
    const { id } = await stage.streamUpstreams.add(stage.db, "org1", STREAM_ID, { url, label: null }, 1);
    sessions.followStream("org1", STREAM_ID, { paused: id });
    sessions.followStream("org1", STREAM_ID, { resumed: id });
    expect(told("order_push")).toEqual([
      { command: "order_push", clientId, id, order: "pause" },
      { command: "order_push", clientId, id, order: "resume" },
    ]);
    await stage.streamUpstreams.setPaused(stage.db, "org1", STREAM_ID, { id, paused: true }, 2);
    expect(await stage.streamUpstreams.find("org1", STREAM_ID, id)).toMatchObject({ paused: true });
    await stage.streamUpstreams.setPaused(stage.db, "org1", STREAM_ID, { id, paused: false }, 3);
    expect(await stage.streamUpstreams.find("org1", STREAM_ID, id)).toMatchObject({ paused: false });
  });

  test("are tried at once only while they wait, and not twice within two seconds", async () => {
    const clientId = await stage.allowed(STREAM);
    const retry = () => sessions.retryUpstream("org1", STREAM_ID, "1");
    const waits = (since: number) =>
      stage.media.measure(clientId, { upstreams: [{ ...upstream("1", "stream"), state: "waiting", since }] });
    expect(retry).toThrow(expect.objectContaining({ code: "unknown_upstream" }));
    stage.media.measure(clientId, { upstreams: [upstream("1", "stream")] });
    expect(retry).toThrow("it is sending");
    waits(Date.now() + 60_000);
    expect(retry).toThrow(expect.objectContaining({ code: "too_many_requests" }));
    expect(told("order_push")).toEqual([]);
    waits(0);
    expect(retry()).toMatchObject({ id: "1", state: "connecting" });
    expect(told("order_push")).toEqual([{ command: "order_push", clientId, id: "1", order: "retry" }]);
  });

  test("are unreadable in the store", async () => {
    await stage.streamUpstreams.add(stage.db, "org1", STREAM_ID, { url, label: "Main" }, 1);
    const [row] = await stage.db.selectFrom("stream_upstream").selectAll().execute();
    for (const secret of ["word", "key", "token", "upstream.example"]) expect(row?.url).not.toContain(secret);
    expect(await stage.streamUpstreams.list("org1", STREAM_ID)).toMatchObject([{ url, label: "Main" }]);
  });
});
