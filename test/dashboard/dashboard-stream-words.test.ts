// The stream page's instructions for broadcasting, and how it stores an hour of numbers.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import {
  ffmpegCommands,
  gstreamerCommands,
  obsSteps,
  playCommands,
  shellWord,
} from "../../ts/dashboard/stream/instructions-text.ts";
import { type NumberName, Series } from "../../ts/dashboard/stream/series.ts";
import { addressesOf, withArguments } from "../../ts/dashboard/streams/addresses.ts";
import type { Numbers, Stream } from "../../ts/dashboard/streams/records.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const STEADY: Numbers = { bitrate_kbps: 2_000, fps: 25, gop_ms: 2_000, loss_percent: 0, rtt_ms: 20, skew_ms: 3 };
/** A series of one point each second. */
function seriesOf(count: number): Series {
  let series = new Series();
  for (let index = 0; index < count; index += 1) {
    series = series.with(START + index * 1_000, STEADY);
  }
  return series;
}

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
