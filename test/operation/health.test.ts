// What is wrong with a running publish, decided in one place (ts/publish/monitoring/health.ts): each finding, its
// severity and when it began, in virtual time.
import { describe, expect, test } from "vitest";
import type { PublishSnapshot, UpstreamStatus } from "../../ts/media.ts";
import { conditionOf, type Finding, PublishHealth, type WatchedSubject } from "../../ts/publish/monitoring/health.ts";
import { numbersOf, type Reading } from "../../ts/publish/monitoring/numbers.ts";
import { RecordingMedia } from "../support/recording-media.ts";

const START = 1_000_000;
const STEP_MS = 5_000;
const TRACKS = {
  video: { codec: "H264", width: 1_280, height: 720 },
  audio: { codec: "Opus", sampleRate: 48_000, channels: 2 },
};

type Counters = Partial<PublishSnapshot>;

function openHealth(of: Partial<WatchedSubject> = {}) {
  const health = new PublishHealth({
    ...{ protocol: "whip", acceptedAt: START, labelOf: () => null, limitKbps: () => 0 },
    ...of,
  });
  let before: Reading | null = null;
  return {
    health,
    /** A point `seconds` after the start; by default of a steady publish of 2,000 kbit/s and 25 frames a second. */
    point(seconds: number, counters: Counters = {}, keyframeAgeMs = 1_000): readonly Finding[] {
      const at = START + seconds * 1_000;
      const media = new RecordingMedia();
      const steady = { bytesIn: seconds * 250_000, videoFrames: seconds * 25, gopMs: 2_000, tracks: TRACKS };
      media.measure(1, { ...steady, ...counters });
      const snapshot = media.snapshot(1) as PublishSnapshot;
      const numbers = numbersOf(snapshot, at, before);
      before = { at, bytesIn: snapshot.bytesIn, videoFrames: snapshot.videoFrames };
      const diagnostics = of.protocol === "rtmp" ? null : ({ video: { keyframeAgeMs } } as never);
      return health.point({ at, snapshot, numbers }, diagnostics);
    },
  };
}

/** Findings after points of every five seconds for `seconds`; `counters` returns what differs at each. */
function after(seconds: number, counters: (second: number) => Counters = () => ({}), of: Partial<WatchedSubject> = {}) {
  const { point } = openHealth(of);
  let found: readonly Finding[] = [];
  for (let second = 0; second <= seconds; second += STEP_MS / 1_000) found = point(second, counters(second));
  return found;
}

const told = (findings: readonly Finding[]) => findings.map(({ severity, words }) => `${severity}: ${words}`);
const upstream = (id: string, state: UpstreamStatus["state"]) =>
  ({ id, url: `rtmp://${id}.example/live`, state, since: START, lastError: "connection refused" }) as UpstreamStatus;

test("a steady publish has no findings, and neither has one that has just begun", () => {
  expect(after(60)).toEqual([]);
  const nothing: Counters = { bytesIn: 0, videoFrames: 0, gopMs: null, tracks: { video: null, audio: null } };
  expect(openHealth().point(4, nothing)).toEqual([]);
});

test.each<[string, string, (second: number) => Counters]>([
  ["no data at all", "bad: Nothing arrives from the broadcaster", () => ({ silentMs: 6_000 })],
  ["a connection without media", "bad: Neither video nor audio arrives", () => ({ bytesIn: 7 })],
  ["a frozen video", "bad: The video has stopped", () => ({ videoFrames: 7 })],
  ["no audio", "attention: There is no audio", () => ({ tracks: { ...TRACKS, audio: null } })],
  [
    "audio alone",
    "note: There is no video",
    () => ({ tracks: { ...TRACKS, video: null }, videoFrames: 0, gopMs: null }),
  ],
  ["rare keyframes", "attention: Keyframes are 5.0 s apart", () => ({ gopMs: 5_000 })],
  ["very rare keyframes", "bad: Keyframes are 12.0 s apart", () => ({ gopMs: 12_000 })],
  ["some loss", "attention: 2 % of the packets are lost", () => ({ lossPercent: 2 })],
  ["much loss", "bad: 9 % of the packets are lost", () => ({ lossPercent: 9 })],
  ["skew", "attention: Video and audio are 150 ms apart", () => ({ skewMs: -150 })],
  ["a long round trip", "attention: The round-trip time is high: 450 ms", () => ({ rttMs: 450 })],
  ["a failing transcoder", "bad: The audio is not transcoded to AAC", () => ({ transcoderError: "no AAC" })],
  [
    "slow readers",
    "attention: 1,200 frames were dropped for slow readers",
    (second) => ({ droppedFrames: second < 60 ? 0 : 1_200 }),
  ],
  [
    "irregular media",
    "note: The broadcaster’s media is irregular (3×)",
    () => ({ irregularities: [{ code: "time_step", count: 3 }] }),
  ],
  [
    "an unsteady frame rate",
    "attention: The frame rate is unsteady",
    (second) => ({ videoFrames: second * 25 + (second % 10 === 0 ? 0 : 60) }),
  ],
  [
    "a bitrate that fell",
    "attention: The bitrate fell to 400 kbps",
    (second) => ({ bytesIn: second <= 50 ? second * 250_000 : 12_500_000 + (second - 50) * 50_000 }),
  ],
])("a publish with %s has the finding", (_, words, counters) => {
  expect(told(after(60, counters))).toEqual([words]);
});

test("keyframes of an RTMP encoder are missing while a reader waits, those of a browser by their age", () => {
  expect(told(after(60, () => ({ keyframeAwaitedMs: 7_000 }), { protocol: "rtmp" }))).toEqual([
    "bad: No keyframe for a long time",
  ]);
  const [missing] = openHealth().point(60, {}, 8_000);
  expect(missing).toMatchObject({ code: "keyframes_missing", since: START + 52_000 });
});

test("a bitrate that reaches its limit is a note", () => {
  expect(told(after(60, () => ({}), { limitKbps: () => 2_100 }))).toEqual(["note: The limit of 2.1 Mbps is reached"]);
});

test("an upstream that fails needs attention while another receives the stream, and is bad when none does", () => {
  const labelOf = (id: string) => (id === "b" ? "Main channel" : null);
  const both = [upstream("a", "sending"), upstream("b", "refused")];
  const [one] = after(10, () => ({ upstreams: both }), { labelOf });
  expect(one).toMatchObject({
    ...{ code: "upstream_down", about: "b", severity: "attention", since: START },
    words: "Main channel does not receive the stream",
    advice: "It is tried again and again. The last error: connection refused",
  });
  expect(told(after(10, () => ({ upstreams: [upstream("a", "waiting")] })))).toEqual([
    "bad: rtmp://a.example/live does not receive the stream",
  ]);
  expect(after(10, () => ({ upstreams: [upstream("a", "connecting")] }))).toEqual([]);
});

test("a finding keeps the time at which it began, and the worst is first", () => {
  const { point, health } = openHealth();
  point(20);
  point(25, { lossPercent: 2 });
  point(30, { lossPercent: 7, rttMs: 400 });
  expect(health.findings.map(({ code, since }) => [code, (since - START) / 1_000])).toEqual([
    ["packet_loss", 25],
    ["long_round_trip", 30],
  ]);
  point(35);
  expect(point(40, { lossPercent: 2 })[0]?.since).toBe(START + 40_000);
});

test("a loss is over only below half a percent, so that it does not come and go", () => {
  const { point } = openHealth();
  expect(point(20, { lossPercent: 0.9 })).toEqual([]);
  expect(point(25, { lossPercent: 1 })).toHaveLength(1);
  expect(point(30, { lossPercent: 0.7 })).toHaveLength(1);
  expect(point(35, { lossPercent: 0.4 })).toEqual([]);
});

test("frames dropped for slow readers are reported for a minute after the last one", () => {
  const dropped = (last: number) => (second: number) => ({ droppedFrames: Math.min(second, last) });
  expect(after(120, dropped(70))).toHaveLength(1);
  expect(after(140, dropped(70))).toEqual([]);
});

test("a reading between two points, as lists take them each second, finds the same", () => {
  const { point, health } = openHealth();
  point(20);
  const media = new RecordingMedia();
  media.measure(1, { bytesIn: 9, videoFrames: 9, tracks: TRACKS, lossPercent: 2 });
  const snapshot = media.snapshot(1) as PublishSnapshot;
  const at = START + 21_000;
  expect(told(health.assess({ at, snapshot, numbers: numbersOf(snapshot, at, null) }))).toEqual([
    "attention: 2 % of the packets are lost",
  ]);
});

describe("a publish is", () => {
  test.each([
    ["good", "without findings", []],
    ["good", "with a note", ["note"]],
    ["attention", "with something that needs attention", ["note", "attention"]],
    ["bad", "with something bad", ["attention", "bad"]],
  ] as const)("%s %s", (condition, _, severities) => {
    expect(conditionOf(severities.map((severity) => ({ severity })))).toBe(condition);
  });
});

test("media that stops is found within seconds after the clock was set back by an hour", () => {
  const { point } = openHealth();
  const stopped = { bytesIn: 2_500_000, videoFrames: 250 };
  for (const second of [0, 5, 10]) point(second);
  const found = [-3_600, -3_595, -3_590].map((second) => point(second, stopped).map(({ code }) => code));
  expect(found.at(-1)).toContain("no_media");
});
