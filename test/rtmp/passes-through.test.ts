// What is inside a picture besides the picture (SEI: captions, timecodes), and metadata, from real encoders, by each way
// out (docs/passes-through.md). A publish with odd messages after every video frame: a player, an upstream and the
// customer see the same as without them. Upstreams that are added and removed while a stream is live, and silence for
// those that require audio. nginx-rtmp is the upstream and records. The tests of the media core are
// crates/ingest/src/switchboard/tests/passes_through.rs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, start, until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { sessionOf } from "../support/drop-outs.ts";
import { broadcast, decodeComplaints, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { content, isMonotonic, ofTrack, startsAtKeyframe } from "../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { type OddMessage, startOddMessages } from "../support/odd-messages.ts";
import { publishByWerift } from "../support/werift.ts";
import { isWholeRun } from "../support/whole-run.ts";

const SEI = "what-goes-with-this-picture";
/** Adds it to every keyframe, as user data (H.264 D.1.7). */
const WITH_SEI = `h264_metadata=sei_user_data=086f3693b7b34f2c965321492feee5b8+${SEI}`;
const SECONDS = isWholeRun ? 12 : 6;

const folder = mkdtempSync(join(tmpdir(), "headgate-passes-"));
let customer: Customer;
let headgate: Headgate;
let upstream: NginxRtmp;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  const env = { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  headgate = await startHeadgate({ customer, env });
});
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Stream {
  readonly id: string;
  readonly name: string;
}

async function newStream(): Promise<Stream> {
  const made = (await headgate.call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  return { id: made.id, name: made.ingest.rtmp.streamname };
}

/** What a player writes to a file until the broadcast ends. */
async function played({ name }: Stream): Promise<Buffer> {
  const file = join(folder, `${name}.flv`);
  await run("ffmpeg", ["-nostdin", "-v", "error", "-i", `${headgate.rtmp}/${name}`, "-c", "copy", file]);
  return readFileSync(file);
}

/** The preview until the broadcast ends. */
async function previewed({ id }: Stream): Promise<Buffer> {
  const answer = await fetch(`${headgate.http}/live/${id}.flv`, { headers: { "x-service-apikey": headgate.apiKey } });
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

/** Everything that three readers get of a broadcast: a player, a preview and an upstream. */
async function readersOf(stream: Stream): Promise<Readonly<Record<"player" | "preview" | "upstream", Buffer>>> {
  const live = async () => ((await headgate.call("GET", `/stream/${stream.id}`)) as { state: string }).state === "live";
  await until("the stream is live", live);
  // The first frame may be still to come; the preview waits for it, and ffmpeg too.
  const [player, preview] = await Promise.all([played(stream), previewed(stream)]);
  await until("the end of the push", () => upstream.hasEnded(stream.name));
  return { player, preview, upstream: readFileSync(upstream.recording(stream.name) ?? "") };
}

test.concurrent("RTMP: SEI stays inside its picture for players, upstreams and previews; metadata reaches players and previews", async ({
  expect,
}) => {
  const stream = await newStream();
  const encoded = join(folder, "in.h264");
  const pattern = ["-f", "lavfi", "-i", `testsrc=size=320x180:rate=25:duration=${SECONDS}`];
  const encoding = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-bsf:v", WITH_SEI, "-f", "h264"];
  await run("ffmpeg", ["-nostdin", "-v", "error", ...pattern, ...encoding, encoded]);
  const encoder = start("ffmpeg", [
    ...["-nostdin", "-v", "error", "-re", "-i", encoded, "-c", "copy", "-metadata", "title=Finale"],
    ...["-f", "flv", `${headgate.rtmp}/${stream.name}`],
  ]);
  const got = await readersOf(stream);
  expect(await encoder.exit, encoder.stderr()).toBe(0);
  for (const bytes of Object.values(got)) expect(bytes.includes(SEI)).toBe(true);
  expect([got.player.includes("Finale"), got.preview.includes("Finale")]).toEqual([true, true]);
});

test.concurrent("WHIP: SEI stays inside its picture for players, upstreams and previews", async ({ expect }) => {
  const stream = await newStream();
  const publish = publishByWerift(headgate.whip(stream.name), SECONDS, "320x180", WITH_SEI);
  const [got] = await Promise.all([readersOf(stream), publish]);
  for (const bytes of Object.values(got)) expect(bytes.includes(SEI)).toBe(true);
});

const ODD_SECONDS = isWholeRun ? 8 : 5;

/** An AMF0 command of the encoder's own with these bytes after its command object. */
const own = (...values: number[]) => [2, 0, 3, 0x6f, 0x77, 0x6e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, ...values];
const odd = (type: number, ...body: number[]): OddMessage => ({ type, body: Uint8Array.from(body) });

const MESSAGES = [
  // Tags that end inside their header.
  ...[[0xaf], [0x90], [0x91, 0x4f]].map((body) => odd(8, ...body)),
  ...[[0x17], [0x27, 1], [0x90], [0x91, 0x68, 0x76]].map((body) => odd(9, ...body)),
  // G.711, Speex, MP3 of 8 kHz; codec id 0.
  ...[0x72, 0x82, 0xb2, 0xe2].map((first) => odd(8, first, 1, 2, 3)),
  odd(9, 0x20, 1, 2, 3),
  // References, AMF3, cut arguments, empty commands, with and without the format byte.
  ...[own(7, 0, 0), own(0x11, 4, 1), own(2, 0, 9, 1), own(0x0e), []].flatMap((body) => [
    odd(20, ...body),
    odd(17, ...body),
    odd(17, 0, ...body),
  ]),
  odd(18),
  odd(15, 0),
  // Control messages that mean nothing.
  odd(1, 0, 0),
  odd(2, 0, 0, 1, 0),
  odd(5, 0, 0, 0, 0),
  odd(4, 9, 9),
];

test("odd messages after every frame of ffmpeg cost no frame and are named", async () => {
  const proxy = await startOddMessages(Number(new URL(headgate.rtmp).port), MESSAGES);
  const { name } = await newStream();
  const encoder = broadcast(`rtmp://127.0.0.1:${proxy.port}/live/${name}`, {
    seconds: ODD_SECONDS,
    gop: 1_000,
    keepsCopy: true,
  });
  const playing = until("the stream is live", () => packetsOf(`${headgate.rtmp}/${name}`).catch(() => null));
  const codes = await until("they are named", async () => {
    const session = await sessionOf(headgate, name);
    if (session === undefined) return null;
    const { irregularities } = await headgate.call("GET", `/session/${session.client_id}`);
    const found = (irregularities as readonly { code: string }[]).map(({ code }) => code);
    return found.length >= 4 ? found.sort() : null;
  });
  expect(codes).toEqual(["truncated_tag", "unreadable_message", "unsupported_audio", "unsupported_video"]);
  const played = await playing;
  expect(await encoder.exit, encoder.stderr()).toBe(0);
  const want = content(await encoder.sent());
  expect(want.video).toHaveLength(25 * ODD_SECONDS);
  expect(content(played)).toEqual(want);
  const recording = await until("the recording", () => upstream.recording(name));
  expect(content(await packetsOf(recording))).toEqual(want);
  expect(await decodeComplaints(recording)).toBe("");
  proxy.close();
});

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
