// How observations of a running publish become moments, in virtual time: first events, lasting conditions,
// and what is omitted.
import { describe, expect, test } from "vitest";
import type { PublishSnapshot, WhipDiagnostics } from "../../ts/media.ts";
import { PublishHealth } from "../../ts/publish/monitoring/health.ts";
import { numbersOf } from "../../ts/publish/monitoring/numbers.ts";
import { MomentList, moment } from "../../ts/publish/timeline/moments.ts";
import { type Observation, WatchedPublish } from "../../ts/publish/timeline/watched-publish.ts";
import { lasting, wordsOf } from "../../ts/publish/timeline/words.ts";
import { withoutSecrets } from "../../ts/text/without-secrets.ts";

const START = 1_000_000;
const NOTHING: PublishSnapshot = {
  ...{
    clientId: 1,
    onAir: true,
    timestampMs: 0,
    bytesIn: 0,
    bytesOut: 0,
    receivedBytes: 0,
    silentMs: 0,
    subscribers: 0,
  },
  ...{
    droppedFrames: 0,
    videoFrames: 0,
    gopMs: null,
    keyframeAwaitedMs: null,
    rttMs: null,
    lossPercent: null,
    skewMs: null,
  },
  tracks: { video: null, audio: null },
  upstreams: [],
  transcoderError: null,
  irregularities: [],
};

interface Seen {
  readonly snapshot?: Partial<PublishSnapshot>;
  readonly diagnostics?: Partial<WhipDiagnostics> | null;
  readonly video?: { readonly keyframeAgeMs: number; readonly plis: number };
  readonly isConnected?: boolean;
}

const TRACK = { kbps: 0, packets: 0, lost: 0, lossPercent: 0, recovered: 0, nacks: 0, jitterMs: 0 };
const VIDEO = {
  ...{ codec: "H264", profile: "", level: "", width: 1, height: 1, fps: 30, plis: 0, withheld: 0, reorderDepth: 0 },
  ...{ layer: "", layers: 1, track: TRACK },
};

function lookOf({
  snapshot = {},
  diagnostics = null,
  video,
  isConnected = false,
}: Seen): Omit<Observation, "findings"> {
  const report = { isConnected, dtlsRole: "server", srtp: "", rejected: 0, problems: [] };
  const seen = diagnostics === null && video === undefined ? null : { ...report, ...diagnostics };
  return {
    snapshot: { ...NOTHING, ...snapshot },
    diagnostics: seen === null ? null : { ...seen, ...(video && { video: { ...VIDEO, ...video } }) },
    isConnected,
  };
}

/** A publish that is polled after each of these seconds; returns its moments as `seconds what text`. */
function watched(protocol: "rtmp" | "whip", looks: readonly (readonly [seconds: number, seen: Seen])[]) {
  const publish = new WatchedPublish({ protocol, acceptedAt: START });
  const health = new PublishHealth({ protocol, acceptedAt: START, labelOf: () => null, limitKbps: () => 0 });
  for (const [seconds, seen] of looks) {
    const at = START + seconds * 1_000;
    const look = lookOf({ ...seen, snapshot: { bytesIn: seconds * 1_000, ...seen.snapshot } });
    const snapshot = look.snapshot ?? NOTHING;
    const findings = health.point({ at, snapshot, numbers: numbersOf(snapshot, at, null) }, look.diagnostics);
    publish.observe(at, { ...look, findings });
  }
  const end = START + (looks.at(-1)?.[0] ?? 0) * 1_000;
  return {
    publish,
    health,
    told: publish.moments(end).map((of) => `${(of.at - START) / 1_000} ${of.what}: ${wordsOf(of)}`),
  };
}

const running = (seconds: number): Partial<PublishSnapshot> => ({ videoFrames: seconds * 30 });

test("something irregular is one entry with its newest count, at its first occurrence", () => {
  const irregular = (count: number): Seen => ({ snapshot: { irregularities: [{ code: "time_step", count }] } });
  const { told } = watched("rtmp", [
    [1, {}],
    [2, irregular(1)],
    [3, irregular(1)],
    [4, irregular(3)],
  ]);
  const text = "The encoder's clock restarted or jumped: the stream continued without the step. (3 times)";
  expect(told).toEqual([`2 irregular: ${text}`]);
});

describe("a start", () => {
  test("by WHIP has ICE and DTLS, audio and video once each", () => {
    const path = { transport: "udp", client: "203.0.113.7:50000" };
    const audio = { codec: "Opus", sampleRate: 48_000, channels: 2 };
    const video = { codec: "H264", width: 1_280, height: 720 };
    const { publish, told } = watched("whip", [
      [0.2, {}],
      [0.4, { isConnected: true }],
      [0.6, { diagnostics: path, isConnected: true, snapshot: { tracks: { audio, video: null } } }],
      [0.8, { diagnostics: path, isConnected: true, snapshot: { videoFrames: 1, tracks: { audio, video } } }],
      [1.0, { diagnostics: path, isConnected: true, snapshot: { videoFrames: 9, tracks: { audio, video } } }],
    ]);
    expect(told).toEqual([
      "0.4 connected: ICE and DTLS connected after 400 ms over UDP from 203.0.113.7:50000.",
      "0.6 first_audio: The first audio arrived after 600 ms: Opus, 48 kHz, 2 channels.",
      "0.8 first_video: The first video arrived after 800 ms: H.264, 1280×720.",
    ]);
    expect(publish.isStarting).toBe(false);
  });

  test("by WHIP is connected before the path is measured, and contains it afterwards", () => {
    const { publish } = watched("whip", [[0.4, { isConnected: true }]]);
    expect(publish.moments(START).map(wordsOf)).toEqual(["ICE and DTLS connected after 400 ms."]);
    const later = lookOf({ isConnected: true, diagnostics: { transport: "tcp", client: "203.0.113.7:1" } });
    publish.observe(START + 1_200, { ...later, findings: null });
    const words = "ICE and DTLS connected after 400 ms over TCP from 203.0.113.7:1.";
    expect(publish.moments(START).map(wordsOf)).toEqual([words]);
  });

  test("whose DTLS handshake is not finished says that ICE found a path", () => {
    const path = { transport: "udp", client: "203.0.113.7:50000" };
    const { publish, told } = watched("whip", [[1, { diagnostics: path }]]);
    expect(told).toEqual([
      "1 ice_connected: ICE found a path after 1 s over UDP from 203.0.113.7:50000; the DTLS handshake was not finished yet.",
    ]);
    expect(publish.isStarting).toBe(true);
  });

  test("by RTMP has neither", () => {
    const tracks = { audio: null, video: { codec: "H264", width: null, height: null } };
    const { told } = watched("rtmp", [[1, { snapshot: { videoFrames: 1, tracks } }]]);
    expect(told).toEqual(["1 first_video: The first video arrived after 1 s: H.264."]);
  });
});

describe("a condition is reported once, with its duration", () => {
  const withKeyframe = (seconds: number, keyframeAgeMs: number, plis: number): readonly [number, Seen] => [
    seconds,
    { snapshot: running(seconds), video: { keyframeAgeMs, plis }, isConnected: true },
  ];
  const troubles = (told: readonly string[]) => told.filter((line) => !/connected|first_/.test(line));

  test("a missing keyframe, and how often it was requested", () => {
    const { health, told } = watched("whip", [
      withKeyframe(5, 1_000, 2),
      withKeyframe(10, 6_000, 3),
      withKeyframe(15, 11_000, 5),
      withKeyframe(16, 300, 5),
    ]);
    expect(troubles(told)).toEqual(["4 keyframes_missing: No keyframe for 12 s; requested 3 times."]);
    expect(health.findings).toEqual([]);
  });

  test("a keyframe that is still missing", () => {
    const { health, told } = watched("whip", [withKeyframe(5, 1_000, 0), withKeyframe(12.2, 8_200, 1)]);
    expect(troubles(told)).toEqual(["4 keyframes_missing: No keyframe for 8.2 s so far; requested once."]);
    expect(health.findings.map(({ code }) => code)).toEqual(["keyframes_missing"]);
  });

  test("a keyframe of an RTMP encoder that readers wait for", () => {
    const seen = (seconds: number, keyframeAwaitedMs: number | null): readonly [number, Seen] => [
      seconds,
      { snapshot: { ...running(seconds), keyframeAwaitedMs } },
    ];
    const { told } = watched("rtmp", [seen(5, 4_000), seen(10, 9_000), seen(15, 14_000), seen(20, null)]);
    expect(troubles(told)).toEqual(["1 keyframes_missing: No keyframe for 19 s."]);
  });

  test("keyframes of an RTMP encoder that are far apart", () => {
    const seen = (seconds: number, gopMs: number): readonly [number, Seen] => [
      seconds,
      { snapshot: { ...running(seconds), gopMs } },
    ];
    const { told } = watched("rtmp", [seen(5, 10_000), seen(10, 10_000), seen(15, 2_000)]);
    expect(troubles(told)).toEqual([
      "5 keyframes_rare: Keyframes were 10 s apart for 10 s: players take that long to start. Set the encoder's keyframe interval to 2 s.",
    ]);
  });

  test("lost packets, with the highest loss", () => {
    const seen = (seconds: number, lossPercent: number): readonly [number, Seen] => [
      seconds,
      { snapshot: { ...running(seconds), lossPercent } },
    ];
    const { told } = watched("whip", [seen(5, 2), seen(10, 7.53), seen(15, 0.7), seen(20, 0), seen(25, 0.9)]);
    expect(troubles(told)).toEqual([
      "5 packet_loss: Up to 7.5 % of the packets were lost and not recovered, for 15 s.",
    ]);
  });

  test("video that stops although the connection is up, and silence", () => {
    const { told } = watched("rtmp", [
      [5, { snapshot: { videoFrames: 150 } }],
      [10, { snapshot: { videoFrames: 150 } }],
      [15, { snapshot: { videoFrames: 300 } }],
      [22, { snapshot: { videoFrames: 300, silentMs: 7_000 } }],
      [25, { snapshot: { videoFrames: 400 } }],
    ]);
    expect(troubles(told)).toEqual([
      "5 video_stopped: No video frame arrived for 10 s, although the connection was up.",
      "15 silent: Nothing arrived from the broadcaster for 10 s.",
    ]);
  });
});

test("an upstream that is lost and comes back is reported with how long it was gone", () => {
  const { publish } = watched("rtmp", []);
  const url = "rtmp://up.example:1935/live";
  publish.upstream(START + 1_400, "1", true, url, "");
  publish.upstream(START + 60_000, "1", false, url, "the connection was closed");
  publish.upstream(START + 61_000, "1", false, url, "connection refused");
  publish.upstream(START + 72_000, "1", true, url, "");
  expect(publish.moments(START + 80_000).map(wordsOf)).toEqual([
    `Upstream ${url} accepted the publish after 1.4 s.`,
    `Upstream ${url} was lost: the connection was closed.`,
    `Upstream ${url} did not accept the publish: connection refused.`,
    `Upstream ${url} accepted the publish again after 12 s.`,
  ]);
  expect(publish.figures()).toMatchObject({ upstreams: 1, upstreamLosses: 2 });
});

test("of a thousand moments of one kind the first and the newest eight are kept, and the others counted", () => {
  const list = new MomentList();
  for (let at = 0; at < 1_000; at += 1)
    list.add(moment(at, "upstream_lost", { upstream: "rtmp://u:1935/live", was_sending: false, detail: "closed" }));
  list.add(moment(2_000, "accepted", { has_webhook: true }));
  const told = list.read();
  expect(told.map(({ at }) => at)).toEqual([
    ...[0, 1, 2, 3, 4, 5, 6, 7, 8],
    ...[992, 993, 994, 995, 996, 997, 998, 999, 2_000],
  ]);
  expect(told[8]).toMatchObject({ what: "left_out", figures: { count: 984, of: "upstream_lost" } });
});

test.each([
  [0, "0 ms"],
  [310.4, "310 ms"],
  [1_000, "1 s"],
  [8_240, "8.2 s"],
  [59_990, "1 min"],
  [192_000, "3 min 12 s"],
  [7_200_000, "2 h"],
  [7_500_000, "2 h 5 min"],
])("%d ms are written as %s", (ms, words) => {
  expect(lasting(ms)).toBe(words);
});

test("texts contain neither credentials nor the query of an address", () => {
  expect(withoutSecrets('lost rtmp://user:pw@up.example/live/k?pass=s3cret, see "https://c.example/h?key=1"')).toBe(
    'lost rtmp://…@up.example/live/k?… see "https://c.example/h?…"',
  );
});
