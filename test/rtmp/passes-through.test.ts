// What is inside a picture besides the picture (SEI: captions, timecodes), and metadata, from real encoders, by each way
// out (docs/passes-through.md). The tests of the media core are crates/ingest/src/switchboard/tests/passes_through.rs.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run, start, until } from "../support/child.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { type NginxRtmp, startNginxRtmp } from "../support/nginx-rtmp.ts";
import { publishByWerift } from "../support/werift.ts";

const SEI = "what-goes-with-this-picture";
/** Adds it to every keyframe, as user data (H.264 D.1.7). */
const WITH_SEI = `h264_metadata=sei_user_data=086f3693b7b34f2c965321492feee5b8+${SEI}`;
const SECONDS = 12;

const folder = mkdtempSync(join(tmpdir(), "headgate-passes-"));
let headgate: Headgate;
let upstream: NginxRtmp;

beforeAll(async () => {
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({ env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}` } });
});
afterAll(async () => {
  await headgate?.stop();
  await upstream?.stop();
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
