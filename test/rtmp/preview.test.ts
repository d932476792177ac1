// Previews of real broadcasts: HTTP-FLV that FFmpeg reads without a complaint, close to live, with bounded
// memory for readers that do not read, and ended with the publish. Permissions are tested in
// preview-access.test.ts.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tagsOf, timestampOf } from "../matrix/flv.ts";
import { until } from "../support/child.ts";
import { broadcast, decodeComplaints, packetsOf } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { isMonotonic, ofTrack, startsAtKeyframe } from "../support/judge.ts";
import { judge } from "../support/pyav.ts";
import { publishByWerift } from "../support/werift.ts";
import { inWholeRun } from "../support/whole-run.ts";

const LIMIT_MS = 120_000;
const BROADCAST_S = 10;
/** Highest latency of a preview behind its broadcaster, ms. */
const BEHIND_LIMIT_MS = 2_000;
/** Stalled readers, and the bitrate they do not read: in ten seconds 25 MB each, of which the kernel buffers
 *  some 4. */
const STALLED = 8;
const STALLED_KBPS = 20_000;
/** Memory limit for all of them, bytes: their queues, and the variation of a busy process. Unbounded it would
 *  be 200 MB. */
const STALLED_LIMIT_BYTES = 96 << 20;
/** By then everything released has been garbage-collected, ms. */
const COLLECTED_MS = 15_000;
const PERSON = { email: "viewer@customer.example", password: "correct horse battery", role: "readonly" };

let headgate: Headgate;
let folder: string;

beforeAll(async () => {
  headgate = await startHeadgate();
  folder = mkdtempSync(join(tmpdir(), "headgate-preview-"));
  await headgate.call("POST", "/organisation/user", PERSON);
}, LIMIT_MS);
afterAll(async () => await headgate?.stop());

/** The session cookie of a person with the role readonly. */
async function signIn(): Promise<Record<string, string>> {
  const headers = { "content-type": "application/json" };
  const login = await fetch(`${headgate.http}/login`, { method: "POST", headers, body: JSON.stringify(PERSON) });
  expect(login.status).toBe(200);
  const { csrf_token } = (await login.json()) as { csrf_token: string };
  return { cookie: (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "", "x-csrf-token": csrf_token };
}

interface NewStream {
  readonly id: string;
  readonly name: string;
}

async function newStream(): Promise<NewStream> {
  const made = (await headgate.call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  return { id: made.id, name: made.ingest.rtmp.streamname };
}

interface Seen {
  /** All data received so far. */
  bytes(): Buffer;
  /** Resolves when the body has ended, with true if that was because it was closed. */
  readonly ended: Promise<boolean>;
  giveUp(): void;
}

/** Reads a preview as it arrives, once the stream is live. */
async function look(stream: NewStream, headers: Record<string, string>): Promise<Seen> {
  const abort = new AbortController();
  const response = await until("the stream is live", async () => {
    const tried = await fetch(`${headgate.http}/live/${stream.id}.flv`, { headers, signal: abort.signal });
    if (tried.status === 200) return tried;
    expect(tried.status, await tried.text()).toBe(404);
    return null;
  });
  const chunks: Uint8Array[] = [];
  async function read(): Promise<boolean> {
    try {
      for await (const chunk of response.body ?? []) chunks.push(chunk);
      return false;
    } catch (error) {
      if (abort.signal.aborted) return true;
      throw error;
    }
  }
  const ended = read();
  ended.catch(() => {});
  return { bytes: () => Buffer.concat(chunks), ended, giveUp: () => abort.abort() };
}

const tagTimes = (flv: Buffer) => tagsOf(flv).map(timestampOf);
const newestOf = (flv: Buffer) => Math.max(0, ...tagTimes(flv));

async function previews(): Promise<number> {
  const { metrics } = JSON.parse(headgate.process.stdout()) as { metrics: string };
  const text = await (await fetch(`${metrics}/metrics`)).text();
  return Number(/^headgate_previews (\d+)$/m.exec(text)?.[1]);
}

async function sessionOf(stream: NewStream): Promise<Record<string, number>> {
  const sessions = (await headgate.call("GET", "/session")) as unknown as Record<string, number | string>[];
  return sessions.find((session) => session.stream === stream.id) as Record<string, number>;
}

/** Resident memory of the service, bytes. */
function memory(): number {
  const status = readFileSync(`/proc/${headgate.process.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

describe("of a broadcast by RTMP", () => {
  test(
    "a preview begins at a keyframe and at time 0, has low latency, decodes completely, is not counted, and ends",
    async () => {
      const headers = await signIn();
      const stream = await newStream();
      const encoder = broadcast(`${headgate.rtmp}/${stream.name}`, { seconds: BROADCAST_S, gop: 50, keepsCopy: true });
      const seen = await look(stream, headers);
      await until("five seconds of it", () => newestOf(seen.bytes()) > 5_000);
      const before = newestOf(seen.bytes());
      const session = await sessionOf(stream);
      expect(session).toMatchObject({ subscribers: 0, bytes_out: 0, dropped_frames: 0 });
      expect(await seen.ended).toBe(false);
      expect(await encoder.exit, encoder.stderr()).toBe(0);
      expect(await previews()).toBe(0);

      const file = join(folder, "rtmp.flv");
      writeFileSync(file, seen.bytes());
      const packets = await packetsOf(file);
      expect(startsAtKeyframe(packets)).toBe(true);
      expect(isMonotonic(packets)).toBe(true);
      expect(Math.min(...packets.map(({ dts }) => dts))).toBeLessThan(100);
      expect(await decodeComplaints(file)).toBe("");
      // Everything sent from that keyframe on has arrived, with its own timestamps.
      const sent = await encoder.sent();
      for (const track of ["video", "audio"] as const) {
        const [ours, theirs] = [ofTrack(packets, track), ofTrack(sent, track)];
        const start = theirs.findIndex(({ hash }) => hash === ours[0]?.hash);
        expect(ours.map(({ hash }) => hash)).toEqual(theirs.slice(start, start + ours.length).map(({ hash }) => hash));
        expect(ours.length).toBeGreaterThan((theirs.length - start) * 0.95);
      }
      const [first] = ofTrack(packets, "video");
      const startMs = ofTrack(sent, "video").find(({ hash }) => hash === first?.hash)?.dts ?? Number.NaN;
      expect((session.timestamp_ms ?? 0) - (startMs + before)).toBeLessThan(BEHIND_LIMIT_MS);
    },
    LIMIT_MS,
  );

  inWholeRun(
    "a closed preview frees its place, and one of a signed-out person ends within ten seconds",
    async () => {
      const headers = await signIn();
      const stream = await newStream();
      const encoder = broadcast(`${headgate.rtmp}/${stream.name}`, { seconds: 120 });
      try {
        const first = await look(stream, headers);
        const second = await look(stream, headers);
        await until("both show something", () => first.bytes().length > 1_000 && second.bytes().length > 1_000);
        expect(await previews()).toBe(2);
        first.giveUp();
        expect(await first.ended).toBe(true);
        await until("one place is free", async () => (await previews()) === 1);
        const left = await fetch(`${headgate.http}/logout`, { method: "POST", headers });
        expect(left.status).toBe(200);
        const since = performance.now();
        expect(await second.ended).toBe(false);
        expect(performance.now() - since).toBeLessThan(10_000);
        await until("every place is free", async () => (await previews()) === 0);
      } finally {
        encoder.kill("SIGKILL");
        await encoder.exit;
      }
    },
    LIMIT_MS,
  );

  inWholeRun(
    "a reader that stops reading uses bounded memory and delays neither a player nor another preview",
    async () => {
      const stream = await newStream();
      const encoder = broadcast(`${headgate.rtmp}/${stream.name}`, { seconds: 35, gop: 10, videoKbps: STALLED_KBPS });
      const stalled: Socket[] = [];
      try {
        const key = { "x-service-apikey": headgate.apiKey };
        const reading = await look(stream, key);
        const player = packetsOf(`${headgate.rtmp}/${stream.name}`);
        await until("the reading one shows something", () => reading.bytes().length > 100_000);
        const before = memory();
        for (let each = 0; each < STALLED; each += 1) stalled.push(await stalledReader(stream));
        await until("all of them run", async () => (await previews()) === 1 + STALLED);
        const after = newestOf(reading.bytes());
        await until("ten seconds pass", () => newestOf(reading.bytes()) > after + 10_000, 60_000);
        // Newer Nodes collect garbage later, and rarely.
        await until("it uses little memory", () => memory() - before < STALLED_LIMIT_BYTES, COLLECTED_MS);
        const session = await sessionOf(stream);
        expect(session).toMatchObject({ subscribers: 1, dropped_frames: 0 });
        for (const socket of stalled) socket.destroy();
        await until("their places are free", async () => (await previews()) === 1);
        expect(await encoder.exit, encoder.stderr()).toBe(0);
        expect(await reading.ended).toBe(false);
        const played = ofTrack(await player, "video").map(({ dts }) => dts);
        expect(played.every((dts, at) => at === 0 || dts - (played[at - 1] ?? 0) <= 41)).toBe(true);
        const shown = tagTimes(reading.bytes());
        expect(newestOf(reading.bytes()) - Math.min(...shown)).toBeGreaterThan(20_000);
      } finally {
        for (const socket of stalled) socket.destroy();
        encoder.kill("SIGKILL");
        await encoder.exit;
      }
    },
    LIMIT_MS,
  );
});

/** Requests a preview and never reads the response. */
async function stalledReader(stream: NewStream): Promise<Socket> {
  const { port } = new URL(headgate.http);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  socket.pause();
  const request = [`GET /live/${stream.id}.flv HTTP/1.1`, "host: localhost", `x-service-apikey: ${headgate.apiKey}`];
  await new Promise<void>((resolve) => socket.once("connect", resolve));
  socket.write(`${request.join("\r\n")}\r\n\r\n`);
  return socket;
}

inWholeRun(
  "a preview of a WHIP broadcast has Opus as Enhanced RTMP writes it",
  async () => {
    const stream = await newStream();
    const publishing = publishByWerift(headgate.whip(stream.name), 6, "320x180");
    const seen = await look(stream, { "x-service-apikey": headgate.apiKey });
    await publishing;
    expect(await seen.ended).toBe(false);
    const file = join(folder, "whip.flv");
    writeFileSync(file, seen.bytes());
    const judged = await judge(file);
    expect(judged.codecs).toEqual({ video: "h264", audio: "opus" });
    expect(judged.complaints).toEqual([]);
    expect(startsAtKeyframe(judged.packets) && isMonotonic(judged.packets)).toBe(true);
    expect(ofTrack(judged.packets, "audio").length).toBeGreaterThan(100);
    expect(judged.pictures["320x180"]).toBeGreaterThan(50);
  },
  LIMIT_MS,
);
