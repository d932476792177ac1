// The publish key with real programs: ffmpeg by RTMP, Chromium by WHIP, the command line. The customer gets it, the log
// does not.
import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { type BroadcastStage, openBroadcastStage, withoutPages } from "../support/broadcast-stage.ts";
import { until } from "../support/child.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { casesOfRun, inWholeRun, isWholeRun } from "../support/whole-run.ts";

/** A browser, an encoder and the service share the machine with other load. */
vi.setConfig({ testTimeout: 90_000 });
const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");

let stage: BroadcastStage;
const keys: string[] = [];

beforeAll(async () => {
  const env = { HEADGATE_LOG_LEVEL: "trace", HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  stage = await openBroadcastStage(env, isWholeRun ? undefined : withoutPages);
  await stage.headgate.call("PUT", "/organisation/settings", { publish_key: true });
}, 90_000);
afterEach(() => stage.reset());
afterAll(() => stage?.close());

interface Stream {
  readonly id: string;
  readonly state: string;
  readonly ingest: {
    readonly key: string;
    readonly rtmp: { readonly url: string; readonly streamname: string; readonly stream_key: string };
    readonly whip: { readonly url: string };
  };
}

async function newStream(): Promise<Stream> {
  return kept((await stage.headgate.call("POST", "/stream")) as unknown as Stream);
}

function kept(stream: Stream): Stream {
  keys.push(stream.ingest.key);
  return stream;
}

const stateOf = async ({ id }: Stream) => (await stage.headgate.call("GET", `/stream/${id}`))["state"];
const asked = ({ ingest }: Stream) =>
  stage.customer.calls("publish").filter(({ body }) => body.includes(ingest.rtmp.streamname));

test("an encoder publishes with the key, another is refused without it, and a renewal ends nothing that is live", async () => {
  const stream = await newStream();
  const { rtmp } = stage.headgate;
  const { streamname, stream_key } = stream.ingest.rtmp;
  const refused = broadcast(`${rtmp}/${streamname}`, { seconds: 20 });
  await refused.exit;
  expect(refused.stderr()).toContain("The publish key is missing");
  expect(asked(stream)).toEqual([]);

  const encoder = broadcast(`${rtmp}/${stream_key}`, { seconds: 60 });
  await until("live", async () => (await stateOf(stream)) === "live");
  expect(asked(stream)[0]?.body).toMatch(new RegExp(`^key=${stream.ingest.key}&call=publish&`));
  // A player knows the name only.
  expect(await stage.playedVideo(streamname)).toBe("h264,320,180");

  const renewed = kept((await stage.headgate.call("POST", `/stream/${stream.id}/key`)) as unknown as Stream);
  const late = broadcast(`${rtmp}/${stream_key}`, { seconds: 20 });
  await late.exit;
  expect(late.stderr()).toContain("The publish key is wrong, or was renewed");
  expect(await stateOf(stream)).toBe("live");
  encoder.kill("SIGTERM");
  await encoder.exit;
  await until("ended", async () => (await stateOf(stream)) === "ended");
  const next = broadcast(`${rtmp}/${renewed.ingest.rtmp.stream_key}`, { seconds: 60 });
  await until("live again", async () => (await stateOf(stream)) === "live");
  next.kill("SIGTERM");
  await next.exit;
});

const FORMS: readonly (readonly [string, (of: Stream) => string])[] = [
  ["encoded as a whole", ({ ingest: { key, rtmp } }: Stream) => `${rtmp.streamname}%3Fkey%3D${key}`],
  ["with the question mark encoded", ({ ingest: { key, rtmp } }: Stream) => `${rtmp.streamname}%3Fkey=${key}`],
  ["among other arguments", ({ ingest: { key, rtmp } }: Stream) => `${rtmp.streamname}?a=b&key=${key}&c=d`],
  ["twice", ({ ingest: { key, rtmp } }: Stream) => `${rtmp.streamname}?key=${key}?key=${key}`],
  ["with an ampersand", ({ ingest: { key, rtmp } }: Stream) => `${rtmp.streamname}&key=${key}`],
  ["with a slash behind it", ({ ingest: { key, rtmp } }: Stream) => `${rtmp.streamname}?key=${key}/`],
];

test.each(casesOfRun(FORMS, 4))("an encoder may send it %s", async (_, keyOf) => {
  const stream = await newStream();
  const encoder = broadcast(`${stage.headgate.rtmp}/${keyOf(stream)}`, { seconds: 60, size: "160x90" });
  await until("live", async () => (await stateOf(stream)) === "live");
  encoder.kill("SIGKILL");
  await encoder.exit;
});

test("WHIP tells what is missing in a problem document, and opens with the address of the record", async () => {
  const stream = await newStream();
  const { key, whip, rtmp } = stream.ingest;
  const post = async (url: string) =>
    await fetch(url, { method: "POST", headers: { "content-type": "application/sdp" }, body: OFFER });
  for (const [url, code, title] of [
    [whip.url.replace(`%3Fkey%3D${key}`, ""), "key_missing", "Publish key required"],
    [whip.url.replace(key, "wrong"), "key_wrong", "Wrong publish key"],
  ] as const) {
    const answer = await post(url);
    expect([answer.status, await answer.json()]).toEqual([
      403,
      expect.objectContaining({ code, title, detail: expect.stringContaining("WHIP address again") }),
    ]);
  }
  expect(asked(stream)).toEqual([]);
  const opened = await post(whip.url);
  expect(opened.status).toBe(201);
  const session = opened.headers.get("location") ?? "";
  expect(session).not.toContain(key);
  // The session's URL needs no second look, also after a renewal.
  kept((await stage.headgate.call("POST", `/stream/${stream.id}/key`)) as unknown as Stream);
  expect((await fetch(session, { method: "DELETE" })).status).toBe(200);
  expect((await post(whip.url)).status).toBe(403);
  expect(rtmp.streamname).not.toContain("key");
});

inWholeRun("a browser broadcasts with the stream key, and with a link that has none", async () => {
  const stream = await newStream();
  const { streamname, stream_key } = stream.ingest.rtmp;
  const { page, ...one } = await stage.open("/broadcast");
  await one.press();
  await one.reaches("ready");
  await page.fill("#name", streamname);
  await one.press();
  await until("the words", async () => (await one.says("#alerts")).includes("The publish key is missing"));
  await page.fill("#name", stream_key);
  await one.press();
  await one.reaches("live");
  await one.press();
  await one.reaches("ended");
  const link = await stage.open(`/broadcast#token=${await stage.newToken(streamname)}`);
  await link.press();
  await link.reaches("ready");
  await link.press();
  await link.reaches("live");
  expect(asked(stream).at(-1)?.body).not.toContain("key=");
});

test("the command line shows and renews it", async () => {
  const stream = await newStream();
  const { streamname } = stream.ingest.rtmp;
  const command = async (...words: string[]) =>
    (JSON.parse(await stage.headgate.command(["stream", "key", streamname, ...words])) as Stream).ingest;
  expect((await command()).key).toBe(stream.ingest.key);
  const renewed = await command("--renew");
  const now = kept((await stage.headgate.call("GET", `/stream/${stream.id}`)) as unknown as Stream);
  expect([renewed.key, renewed.key === stream.ingest.key]).toEqual([now.ingest.key, false]);
  await stage.headgate.call("PUT", `/stream/${stream.id}/key`, { publish_key: false });
  expect((await command()).key).toBeNull();
});

test("no key is in the log at its lowest level, and none is shown where arguments are", async () => {
  expect(keys.length).toBeGreaterThan(isWholeRun ? 8 : 5);
  const log = stage.headgate.process.stderr();
  const shown = JSON.stringify([
    await stage.headgate.call("GET", "/organisation/webhook/deliveries?quantity=100"),
    await stage.headgate.call("GET", "/organisation/audit?quantity=100"),
    await stage.headgate.call("GET", "/session"),
  ]);
  const deliveries = (await stage.headgate.call("GET", "/organisation/webhook/deliveries")) as unknown as {
    readonly id: string;
  }[];
  for (const { id } of deliveries.slice(0, 5)) {
    const one = JSON.stringify(await stage.headgate.call("GET", `/organisation/webhook/deliveries/${id}`));
    for (const key of keys) expect(one).not.toContain(key);
  }
  for (const key of keys) {
    expect(log).not.toContain(key);
    expect(shown).not.toContain(key);
  }
});
