// `headgate capture` and `headgate replay` with real broadcasts: a captured publish replays with the same
// outcome, contains no secret, and is available only to operators; a capture that cannot be written does not
// affect the stream.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ReplayOutcome } from "../../ts/media/captures.ts";
import { createCaptures } from "../../ts/publish/capture/captures.ts";
import { run, start, until } from "../support/child.ts";
import { outputOf } from "../support/command.ts";
import { type Customer, startCustomer, testCertificates } from "../support/customer.ts";
import { broadcast, packetsOf } from "../support/ffmpeg.ts";
import { openGateway } from "../support/gateway.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { broadcastByV5 } from "../support/v5-werift.ts";
import { publishByWerift } from "../support/werift.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

const LIMIT_MS = 90_000;
const SECRET = "s3cret-passcode";

let customer: Customer;
let headgate: Headgate;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-capture-"));
  customer = await startCustomer();
  const { cert, key } = testCertificates();
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key);
  const env = {
    HEADGATE_CAPTURE_DIRECTORY: join(folder, "service"),
    HEADGATE_RTMP_TLS_CERT: join(folder, "cert.pem"),
    HEADGATE_RTMP_TLS_KEY: join(folder, "key.pem"),
    HEADGATE_RTMP_TLS_PORT: "0",
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", // tests poll
  };
  headgate = await startHeadgate({ customer, env });
}, LIMIT_MS);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function newStream(): Promise<{ id: string; name: string }> {
  const made = (await headgate.call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
  return { id: made.id, name: made.ingest.rtmp.streamname };
}

const environment = () => ({ PATH: process.env.PATH, HEADGATE_API_KEY: headgate.apiKey });

/** A capture that has started: `over` resolves once it has ended by itself. */
async function capture(
  ...words: string[]
): Promise<{ file: string; said: () => string; stop: () => void; over: () => Promise<void> }> {
  const file = join(folder, `${words.join("")}-${Math.random()}.capture`);
  const args = ["scripts/headgate.mjs", "capture", ...words, file, "--url", headgate.http];
  const child = start(process.execPath, args, { env: environment() });
  let hasEnded = false;
  void child.exit.finally(() => {
    hasEnded = true;
  });
  await until("the capture begins", () => {
    if (hasEnded) throw new Error(`it has ended: ${child.stderr()}`);
    return child.stdout().includes("Capturing until");
  });
  const over = async () => expect(await child.exit, child.stderr()).toBe(0);
  return { file, said: child.stdout, stop: () => child.kill("SIGINT"), over };
}

async function replay(file: string, ...flags: string[]): Promise<ReplayOutcome> {
  return JSON.parse(await outputOf(["replay", file, "--json", ...flags], environment())) as ReplayOutcome;
}

async function clientIdOf(name: string): Promise<string> {
  const publish = await until("the request to the customer", () =>
    customer.calls("publish").find(({ body }) => body.includes(name)),
  );
  const clientId = new URLSearchParams(publish.body).get("clientid") ?? "";
  // The customer is asked before the session exists.
  const isThere = () =>
    headgate.call("GET", `/session/${clientId}`).then(
      () => true,
      () => false,
    );
  await until("it runs", isThere);
  return clientId;
}

/** Bytes received of a publish that runs. */
async function bytesInOf(clientId: string): Promise<number> {
  const { tracks: _, ...session } = await headgate.call("GET", `/session/${clientId}`);
  return Number(session.bytes_in ?? 0);
}

/** Every replay of a file has the same outcome as the publish, and as the previous replay. */
async function replaysAsLive(file: string): Promise<ReplayOutcome> {
  const first = await replay(file);
  expect(first).toMatchObject({ fault: null, difference: null });
  expect(await replay(file)).toEqual(first);
  return first;
}

describe("RTMP", () => {
  test(
    "the next publish is captured from its first byte and replayed, also as FLV",
    async () => {
      const { id, name } = await newStream();
      const { file, over } = await capture("--next", id);
      const encoder = broadcast(`${headgate.rtmp}/${name}?passcode=${SECRET}`, { seconds: 4, keepsCopy: true });
      await encoder.exit;
      await over();
      const bytes = readFileSync(file);
      expect(customer.calls("publish").some(({ body }) => body.includes(SECRET))).toBe(true);
      for (const secret of [SECRET, name, "127.0.0.1"]) expect(bytes.includes(secret), secret).toBe(false);
      const outcome = await replaysAsLive(file);
      expect(outcome).toMatchObject({ whip: false, media: true, fromMiddle: false, end: "unpublished" });
      const sent = await encoder.sent();
      const count = (track: string) => sent.filter((packet) => packet.track === track).length;
      expect(outcome.tracks.map(({ codec, frames }) => [codec, frames])).toEqual([
        ["h264", count("video")],
        ["aac", count("audio")],
      ]);
      const flv = join(folder, "played.flv");
      await replay(file, "--flv", flv);
      const hashes = (packets: typeof sent) => packets.map(({ track, hash }) => track + hash).sort();
      expect(hashes(await packetsOf(flv))).toEqual(hashes(sent));
    },
    LIMIT_MS,
  );

  inWholeRun(
    "over TLS the decrypted bytes are captured, from the first one or from a running publish",
    async () => {
      const { id, name } = await newStream();
      const first = await capture("--next", id, "--seconds", "2");
      const encoder = broadcast(`${headgate.rtmps}/${name}?passcode=${SECRET}`, { seconds: 60 });
      const clientId = await clientIdOf(name);
      await first.over();
      const running = await capture(clientId);
      const before = await bytesInOf(clientId);
      await until("some of it", async () => (await bytesInOf(clientId)) > before + 200_000);
      encoder.kill("SIGINT");
      await running.over();
      for (const { file } of [first, running]) {
        const bytes = readFileSync(file);
        for (const secret of [SECRET, name, "127.0.0.1"]) expect(bytes.includes(secret), secret).toBe(false);
        const { whip, tracks } = await replaysAsLive(file);
        expect([whip, tracks.map(({ codec }) => codec)]).toEqual([false, ["h264", "aac"]]);
      }
    },
    LIMIT_MS,
  );

  test(
    "a running publish is captured from the next message on, and without media keeps frames and sizes",
    async () => {
      const { name } = await newStream();
      const encoder = broadcast(`${headgate.rtmp}/${name}?passcode=${SECRET}`, { seconds: 30 });
      const clientId = await clientIdOf(name);
      await until("media", async () => (await bytesInOf(clientId)) > 0);
      const whole = await capture(clientId, "--seconds", "2");
      await whole.over();
      const blank = await capture(clientId, "--seconds", "2", "--without-media");
      await blank.over();
      encoder.kill("SIGKILL");
      const [media, none] = [await replaysAsLive(whole.file), await replaysAsLive(blank.file)];
      expect(media).toMatchObject({ media: true, fromMiddle: true, end: null, finished: "time_limit" });
      expect(none).toMatchObject({ media: false, fromMiddle: true });
      for (const { tracks, compared } of [media, none]) {
        expect(compared).toBeGreaterThan(60);
        for (const track of tracks) expect(track.frames).toBeGreaterThan(30);
        expect(tracks.every(({ bytes }) => bytes > 1_000)).toBe(true);
      }
      // Zeros make up most of the rest.
      const zeros = readFileSync(blank.file).filter((byte) => byte === 0).length;
      expect(zeros).toBeGreaterThan(readFileSync(blank.file).length / 2);
    },
    LIMIT_MS,
  );
});

describe("WHIP", () => {
  test(
    "a publish is captured from its first packet, without what opens a session, with and without media",
    async () => {
      for (const flags of casesOfRun([["--without-media"], []], 2)) {
        const { id, name } = await newStream();
        const { file, over } = await capture("--next", id, ...flags);
        await publishByWerift(headgate.whip(name), 4, "320x180");
        await over();
        const outcome = await replaysAsLive(file);
        expect(outcome).toMatchObject({ whip: true, media: flags.length === 0, end: "unpublished" });
        const [video, audio] = outcome.tracks;
        expect(video).toMatchObject({ codec: "h264", holes: 0, stepsBack: 0 });
        expect(video?.frames).toBeGreaterThan(60);
        expect(audio?.codec).toBe("opus");
        const text = readFileSync(file).toString("latin1");
        expect(text.match(/a=ice-pwd:(?!x+\r)/g)).toBeNull();
        expect(text.match(/a=ice-pwd:x+\r/g)?.length).toBeGreaterThanOrEqual(2);
        expect(text).not.toMatch(/a=fingerprint:sha-256 (?![0:]+\r)/);
        for (const secret of [name, "127.0.0.1"]) expect(text.includes(secret), secret).toBe(false);
      }
    },
    LIMIT_MS,
  );

  inWholeRun(
    "a running publish is compared from the requested keyframe on",
    async () => {
      const { name } = await newStream();
      const publish = publishByWerift(headgate.whip(name), 9, "320x180");
      const clientId = await clientIdOf(name);
      await until("media", async () => (await bytesInOf(clientId)) > 0);
      const { file, over } = await capture(clientId, "--seconds", "5");
      await over();
      await publish;
      const outcome = await replaysAsLive(file);
      expect(outcome).toMatchObject({ whip: true, fromMiddle: true });
      expect(outcome.compared).toBeGreaterThan(60);
    },
    LIMIT_MS,
  );
});

describe("v5 signalling", () => {
  inWholeRun(
    "a publish whose offer is ours is captured from the answer on, or while it runs",
    async () => {
      const { id, name } = await newStream();
      const asked = { streamname: name, ingesturl: headgate.rtmp };
      const { token } = (await headgate.call("POST", "/webcaster", asked)).data as { token: string };
      const first = await capture("--next", id);
      const live = await broadcastByV5(headgate.http, { jwt: token, streamname: name });
      const clientId = await clientIdOf(name);
      await until("media", async () => (await bytesInOf(clientId)) > 300);
      first.stop();
      await first.over();
      const running = await capture(clientId, "--seconds", "2");
      await running.over();
      await live.close();
      for (const { file } of [first, running]) {
        const { whip, compared, tracks } = await replaysAsLive(file);
        expect([whip, tracks.map(({ codec }) => codec)]).toEqual([true, ["opus"]]);
        expect(compared).toBeGreaterThan(20);
        const text = readFileSync(file).toString("latin1");
        expect(text.match(/a=ice-pwd:(?!x+\r)/g)).toBeNull();
        expect(text).toContain("a=setup:actpass");
        for (const secret of [name, "127.0.0.1"]) expect(text.includes(secret), secret).toBe(false);
      }
    },
    LIMIT_MS,
  );
});

describe("refusals", () => {
  test(
    "a denied publish is reported while its capture waits, and the next one is captured",
    async () => {
      const { id, name } = await newStream();
      const { said, over } = await capture("--next", id);
      customer.answer({ status: 403 });
      await broadcast(`${headgate.rtmp}/${name}`, { seconds: 3 }).exit;
      customer.answer({ status: 200 });
      await until("the report", () => said().includes("A publish was denied (rejected_by_customer): headgate explain"));
      await broadcast(`${headgate.rtmp}/${name}`, { seconds: 1 }).exit;
      await over();
    },
    LIMIT_MS,
  );

  test(
    "another organisation's administrator is refused, and disabled captures are explained",
    async () => {
      await headgate.command(["organisation", "create", "Other"]);
      const keys = JSON.parse(
        await headgate.command(["keys", "create", "--organisation", "Other", "--role", "administrator"]),
      ) as Record<string, string>;
      const key = Object.values(keys).find((value) => typeof value === "string" && value.length > 30) ?? "";
      const ask = async (http: string, apiKey: string) => {
        const headers = { "x-service-apikey": apiKey, "content-type": "application/json" };
        const response = await fetch(`${http}/capture`, { method: "POST", headers, body: '{"client_id":1}' });
        return { status: response.status, text: await response.text() };
      };
      expect((await ask(headgate.http, key)).status).toBe(403);
      const off = await openGateway({}, { captures: null });
      const { id } = (await off.call("POST", "/stream")).body as { readonly id: string };
      const { status, body } = await off.call("POST", "/capture", { body: { stream: id } });
      expect(status).toBe(409);
      expect(JSON.stringify(body)).toContain("Captures are off: set capture.directory");
      await off.close();
    },
    LIMIT_MS,
  );

  inWholeRun(
    "a full disk ends the capture and not the stream",
    async () => {
      const full = join(folder, "full");
      mkdirSync(full);
      const mounted = start("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", full]);
      if ((await mounted.exit) !== 0) return; // not permitted, as in a container
      const small = await startHeadgate({ env: { HEADGATE_CAPTURE_DIRECTORY: full } });
      const stream = (await small.call("POST", "/stream")) as { id: string; ingest: { rtmp: { streamname: string } } };
      const one = await small.call("POST", "/capture", { stream: stream.id, seconds: 60 });
      const encoder = broadcast(`${small.rtmp}/${stream.ingest.rtmp.streamname}`, { seconds: 6, videoKbps: 2_000 });
      const ended = await until("the capture has ended", async () => {
        const now = await small.call("GET", `/capture/${one.id}`);
        return now.state === "ended" ? now : null;
      });
      expect(ended.reason).toBe("disk_failed");
      expect(await encoder.exit, encoder.stderr()).toBe(0);
      await small.stop();
      await run("umount", [full]);
    },
    LIMIT_MS,
  );

  test("a capture that cannot be recorded in the audit log does not begin, and blocks no other", async () => {
    const begun: number[] = [];
    const source = { status: () => ({ bytes: 0, frames: 0 }), stop() {} };
    const captures = createCaptures({
      config: { directory: join(folder, "unrecorded"), maxMb: 1, maxS: 1 },
      media: () => ({
        capture(clientId) {
          begun.push(clientId);
          return source;
        },
        captureNext: () => source,
      }),
      version: "test",
      clock: { now: () => 0 },
      log: { info() {}, warn() {} },
      events: { listen() {} },
    });
    const planned: string[] = [];
    const failing = async ({ id }: { readonly id: string }) => {
      planned.push(id);
      throw new Error("the store is gone");
    };
    for (const clientId of [1, null]) {
      const wanted = { clientId, streamId: "s", seconds: null, media: true };
      await expect(captures.begin(wanted, failing)).rejects.toThrow("the store is gone");
      expect(captures.find(planned.at(-1) ?? "")).toBeNull();
      expect(begun).toEqual([]);
    }
    for (const clientId of [1, null]) {
      const wanted = { clientId, streamId: "s", seconds: null, media: true };
      expect(await captures.begin(wanted, async () => {})).toMatchObject({ clientId });
    }
    expect(begun).toEqual([1]);
  });

  test("a file that is not a capture is refused", async () => {
    await expect(replay("package.json")).rejects.toThrow("this is not a Headgate capture");
    expect(readdirSync(join(folder, "service")).every((file) => file.endsWith(".capture"))).toBe(true);
  });
});
