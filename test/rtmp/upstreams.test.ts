// Upstreams that are added and removed while a stream is live, and silence for those that require audio:
// ffmpeg broadcasts, nginx-rtmp is the upstream and records, ffmpeg decodes.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { broadcast, decodeComplaints, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { isMonotonic, ofTrack, startsAtKeyframe } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";

let upstream: NginxRtmp;
let headgate: Headgate;

beforeAll(async () => {
  upstream = await startNginxRtmp();
  headgate = await startHeadgate();
});
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
});

async function newStream(): Promise<{ readonly id: string; readonly name: string }> {
  const stream = (await headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  return { id: stream.id, name: stream.ingest.rtmp.streamname };
}

const addUpstream = async (stream: string, url: string) =>
  (await headgate.call("POST", `/stream/${stream}/upstream`, { url })) as { id: string; url: string };

/** Waits until so many pictures of `name` have reached the upstream. */
function recorded(name: string, pictures: number): Promise<string> {
  return until(`${pictures} pictures at the upstream`, async () => {
    const file = upstream.recording(name);
    if (file === null) return null;
    const packets = await packetsOf(file).catch(() => []);
    return ofTrack(packets, "video").length >= pictures ? file : null;
  });
}

function ended(id: string) {
  return until("the end", async () => (await headgate.call("GET", `/stream/${id}`)).state === "ended");
}

test("an upstream that is added to and removed from a live stream receives what lies in between, from an IDR on", async () => {
  const { id, name } = await newStream();
  await addUpstream(id, `${upstream.url}/${name}-always`);
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 60, gop: 25 });
  await recorded(`${name}-always`, 30);
  const added = await addUpstream(id, `${upstream.url}/${name}-between?key=1`);
  expect(added.url).toBe(upstream.url);
  const between = await recorded(`${name}-between`, 30);
  await headgate.call("DELETE", `/stream/${id}/upstream/${added.id}`);
  const soFar = ofTrack(await packetsOf(await recorded(`${name}-always`, 30)), "video").length;
  const always = await recorded(`${name}-always`, soFar + 50);
  encoder.kill("SIGTERM");
  await encoder.exit;
  await ended(id);
  const [all, some] = [await packetsOf(always), await packetsOf(between)];
  for (const packets of [all, some]) {
    expect(startsAtKeyframe(packets)).toBe(true);
    expect(isMonotonic(packets)).toBe(true);
  }
  // The permanent upstream has what the other one missed before and after.
  const hashes = ofTrack(all, "video").map(({ hash }) => hash);
  const parts = ofTrack(some, "video").map(({ hash }) => hash);
  const start = hashes.indexOf(parts[0] ?? "");
  expect(hashes.slice(start, start + parts.length)).toEqual(parts);
  expect(start).toBeGreaterThan(0);
  expect(start + parts.length).toBeLessThan(hashes.length);
  expect(await decodeComplaints(between)).toBe("");
});

test("a stream without audio reaches its upstream with silence that decodes, and a player without audio", async () => {
  const { id, name } = await newStream();
  await addUpstream(id, `${upstream.url}/${name}-silent`);
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 60, gop: 25, hasSound: false });
  const playing = until("the stream is live", () => packetsOf(`${headgate.rtmp}/${name}`).catch(() => null));
  const recording = await recorded(`${name}-silent`, 75);
  encoder.kill("SIGTERM");
  await encoder.exit;
  await ended(id);
  const packets = await packetsOf(recording);
  const [pictures, sound] = [ofTrack(packets, "video"), ofTrack(packets, "audio")];
  expect(isMonotonic(packets)).toBe(true);
  const first = pictures[0]?.dts ?? 0;
  expect(sound[0]?.dts).toBeGreaterThanOrEqual(first + 1_000);
  // It keeps up with the video to the end, 1024 samples at a time.
  const [from, to] = [sound[0]?.dts ?? 0, sound.at(-1)?.dts ?? 0];
  expect((pictures.at(-1)?.dts ?? 0) - to).toBeLessThan(100);
  expect(sound).toHaveLength(Math.round(((to - from) * 48) / 1_024) + 1);
  expect(await decodeComplaints(recording)).toBe("");
  expect(ofTrack(await playing, "audio")).toEqual([]);
});
