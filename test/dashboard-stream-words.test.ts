// What the stream page says about a running publish, its instructions for broadcasting, and how it stores an
// hour of numbers.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { type Finding, findingsOf, type Observed } from "../ts/dashboard/stream/diagnosis.ts";
import {
  ffmpegCommands,
  gstreamerCommands,
  obsSteps,
  playCommands,
  shellWord,
} from "../ts/dashboard/stream/instructions-text.ts";
import { type NumberName, Series } from "../ts/dashboard/stream/series.ts";
import { addressesOf, withArguments } from "../ts/dashboard/streams/addresses.ts";
import type { Numbers, Session, Stream } from "../ts/dashboard/streams/records.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const STEADY: Numbers = { bitrate_kbps: 2_000, fps: 25, gop_ms: 2_000, loss_percent: 0, rtt_ms: 20, skew_ms: 3 };
const UPSTREAM = {
  id: "u1",
  label: "Main channel",
  url: "rtmp://upstream.example/live",
  masked_key: "ab…",
  source: "stream",
  state: "sending",
  since: "2026-01-01T00:00:00.000Z",
  last_error: null,
  bytes_out: 0,
  dropped_frames: 0,
  reconnects: 0,
  audio_error: null,
} as const satisfies Session["upstreams"][number];

/** A series of one point each second; `change` returns what differs at each. */
function seriesOf(count: number, change: (index: number) => Partial<Numbers> = () => ({})): Series {
  let series = new Series();
  for (let index = 0; index < count; index += 1) {
    series = series.with(START + index * 1_000, { ...STEADY, ...change(index) });
  }
  return series;
}

function diagnosed(
  session: Partial<Observed["session"]> = {},
  numbers: Partial<Numbers> = {},
  series: Series = seriesOf(60),
  ageMs = 60_000,
): readonly Finding[] {
  const whole: Observed["session"] = {
    protocol: "whip",
    tracks: {
      video: { codec: "h264", width: 1_280, height: 720 },
      audio: { codec: "opus", sample_rate: 48_000, channels: 2 },
    },
    upstreams: [],
    transcoder_error: null,
    irregularities: [],
    dropped_frames: 0,
    max_bitrate_kbps: 0,
    ...session,
  };
  return findingsOf({ session: whole, numbers: { ...STEADY, ...numbers }, series, ageMs });
}
const titles = (findings: readonly Finding[]) => findings.map(({ tone, title }) => `${tone}: ${title}`);

test("a steady broadcast is reported as well, and one that has just begun is not diagnosed", () => {
  expect(titles(diagnosed())).toEqual(["good: All is well"]);
  const nothing = { video: null, audio: null };
  expect(titles(diagnosed({ tracks: nothing }, { gop_ms: null }, new Series(), 2_000))).toEqual(["good: Just started"]);
});

test.each<[string, string, Parameters<typeof diagnosed>]>([
  ["no keyframe", "bad: No keyframe for a long time", [{}, { gop_ms: null }]],
  ["rare keyframes", "attention: Keyframes are 6.0 s apart", [{}, { gop_ms: 6_000 }]],
  ["very rare keyframes", "bad: Keyframes are 12.0 s apart", [{}, { gop_ms: 12_000 }]],
  [
    "an unsteady frame rate",
    "attention: The frame rate is unsteady",
    [{}, {}, seriesOf(60, (index) => ({ fps: index % 2 ? 25 : 8 }))],
  ],
  ["some loss", "attention: 2 % of the packets are lost", [{}, { loss_percent: 2 }]],
  ["much loss", "bad: 9 % of the packets are lost", [{}, { loss_percent: 9 }]],
  ["a long round trip", "attention: The round-trip time is high: 450 ms", [{}, { rtt_ms: 450 }]],
  ["skew", "attention: Video and audio are 350 ms apart", [{}, { skew_ms: -350 }]],
  ["its limit", "attention: The limit of 2.1 Mbps is reached", [{ max_bitrate_kbps: 2_100 }]],
  [
    "silence on the wire",
    "bad: Nothing arrives",
    [{}, {}, seriesOf(60, (index) => (index > 50 ? { bitrate_kbps: 0 } : {}))],
  ],
  [
    "a bitrate that fell",
    "attention: The bitrate fell",
    [{}, {}, seriesOf(60, (index) => (index > 50 ? { bitrate_kbps: 700 } : {}))],
  ],
  [
    "no audio",
    "attention: There is no audio",
    [{ tracks: { video: { codec: "h264", width: 2, height: 2 }, audio: null } }],
  ],
  ["a refusing upstream", "bad: Main channel refuses the stream", [{ upstreams: [{ ...UPSTREAM, state: "refused" }] }]],
  [
    "an upstream out of reach",
    "attention: Main channel cannot be reached",
    [{ upstreams: [{ ...UPSTREAM, state: "waiting" }] }],
  ],
  [
    "an upstream without audio",
    "attention: Main channel gets no audio",
    [{ upstreams: [{ ...UPSTREAM, audio_error: "no AAC" }] }],
  ],
  ["a broken transcoder", "bad: The audio is not transcoded to AAC", [{ transcoder_error: "too many" }]],
  ["slow readers", "attention: 1,200 frames were dropped for slow readers", [{ dropped_frames: 1_200 }]],
])("with %s the matching finding is shown", (_, title, given) => {
  expect(titles(diagnosed(...given))).toContain(title);
});

test("the worst finding is first, and the upstream's own message is shown", () => {
  const upstreams = [{ ...UPSTREAM, state: "refused", last_error: "NetStream.Publish.BadName" } as const];
  const findings = diagnosed({ upstreams }, { rtt_ms: 450 });
  expect(findings.map(({ tone }) => tone)).toEqual(["bad", "attention"]);
  expect(findings[0]?.text).toBe("It is tried again every 30 s. It said: NetStream.Publish.BadName");
});

test("an hour is stored in bounded memory: each second for five minutes, every five seconds before", () => {
  const series = seriesOf(4_000);
  expect(series.length).toBeLessThan(301 + 661);
  const [times] = series.columns("fps", 3_600_000);
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(3_590);
  expect(series.columns("fps", 60_000)[0]).toHaveLength(61);
});

test("the history precedes newer points, and unknown values are gaps", () => {
  const lists: NumberName[] = ["bitrate_kbps", "fps", "gop_ms", "loss_percent", "rtt_ms", "skew_ms"];
  const points = Object.fromEntries(lists.map((name) => [name, [1, null, 3]])) as unknown as Record<
    NumberName,
    number[]
  >;
  const history = Series.of({ step_ms: 5_000, since: START - 10_000, points });
  const series = seriesOf(2).after(history);
  expect(series.columns("fps", 60_000)[1]).toEqual([1, null, 25, 25]);
  expect(series.with(START - 1, STEADY)).toBe(series);
});

const stream = {
  ingest: {
    key: null,
    rtmp: { url: "rtmp://in.example:1935/live", streamname: "Ab1Cd-9XyZ0", stream_key: "Ab1Cd-9XyZ0" },
    rtmps: { url: "rtmps://in.example:1936/live", streamname: "Ab1Cd-9XyZ0", stream_key: "Ab1Cd-9XyZ0" },
    whip: {
      url: "https://in.example/p/webrtc?stream_name=Ab1Cd-9XyZ0&stream_url=rtmp%3A%2F%2Fin.example%3A1935%2Flive",
    },
  },
} as Stream;

test("addresses contain custom arguments, escaped once in the WHIP address", () => {
  const addresses = addressesOf(stream, "?passcode=a&b=c d");
  expect(addresses.rtmps).toBe("rtmps://in.example:1936/live/Ab1Cd-9XyZ0?passcode=a&b=c d");
  expect(new URL(addresses.whip).searchParams.get("stream_name")).toBe("Ab1Cd-9XyZ0?passcode=a&b=c d");
  expect(new URL(addresses.whip).searchParams.get("stream_url")).toBe("rtmp://in.example:1935/live");
  expect(withArguments("name", " ")).toBe("name");
  expect(addressesOf(stream).whip).toBe(stream.ingest.whip.url);
});

test("addresses for broadcasters contain the publish key, before custom arguments, and those for players never do", () => {
  const { rtmp, whip } = stream.ingest;
  const keyed = { ...rtmp, stream_key: `${rtmp.streamname}?key=K3y` };
  const url = whip.url.replace(rtmp.streamname, encodeURIComponent(keyed.stream_key));
  const ingest = { ...stream.ingest, key: "K3y", rtmp: keyed, whip: { url } };
  const addresses = addressesOf({ ...stream, ingest }, "?a=b");
  expect(addresses).toMatchObject({
    key: "Ab1Cd-9XyZ0?key=K3y&a=b",
    rtmp: "rtmp://in.example:1935/live/Ab1Cd-9XyZ0?key=K3y&a=b",
    play: "rtmp://in.example:1935/live/Ab1Cd-9XyZ0?a=b",
  });
  expect(new URL(addresses.whip).searchParams.get("stream_name")).toBe("Ab1Cd-9XyZ0?key=K3y&a=b");
  for (const { text } of playCommands(addresses)) expect(text).not.toContain("K3y");
  expect(addressesOf({ ...stream, ingest }).whip).toBe(url);
});

test("commands contain the stream's own values as one shell word, whatever they are", () => {
  const odd = `a'b"c$(d)\`e\`\\ f`;
  expect(execFileSync("sh", ["-c", `printf %s ${shellWord(odd)}`], { encoding: "utf8" })).toBe(odd);
  const addresses = addressesOf(stream, "p=$HOME");
  const commands = [...ffmpegCommands(addresses), ...gstreamerCommands(addresses)];
  expect(commands).toHaveLength(5);
  for (const { text } of commands)
    expect(text).toMatch(/'(rtmp:\/\/in\.example:1935\/live\/Ab1Cd-9XyZ0\?p=\$HOME|https:.*p%3D%24HOME.*)'/);
  const entered = obsSteps(addresses).filter(({ isCopied }) => isCopied);
  expect(entered.map(({ value }) => value)).toEqual(["rtmp://in.example:1935/live", "Ab1Cd-9XyZ0?p=$HOME"]);
});
