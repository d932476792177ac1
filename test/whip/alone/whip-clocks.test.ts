// A page that pauses its microphone or camera with `replaceTrack(null)`: Chromium's RTP clock of audio stands still
// meanwhile. Upstream, both tracks stay together, and no time is lost.
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Chromium, startChromium } from "../../support/chromium.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { mediaPasses, sessionOf } from "../../support/drop-outs.ts";
import { packetsOf } from "../../support/ffmpeg.ts";
import { audioAhead } from "../../support/growing-flv.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { isMonotonic, ofTrack } from "../../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../../support/nginx-rtmp.ts";
import { isWholeRun } from "../../support/whole-run.ts";

const PAUSE_MS = 3_000;
const BETWEEN_MS = 2_000;
/** After the last pause: longer than a clock takes to be corrected. */
const SETTLES_MS = 3_000;
/** How long the tracks are compared, before the first pause and then. */
const COMPARED_MS = 3_000;
/** By how much the pauses may change how far the tracks are apart: a frame of each, and what an encoder that is late on a
 *  busy machine is later than before. A pause that is not made up for is 3 s. */
const APART_LIMIT_MS = 250;
/** Chromium's start and end, on a busy machine. */
const WALL_LIMIT_MS = 1_500;

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
let chromium: Chromium;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({ customer, env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}` } });
  chromium = await startChromium();
}, 60_000);
afterAll(async () => {
  await chromium?.close();
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

// Each has its own page, which mostly waits.
test.concurrent.each([
  { paused: ["audio"], times: isWholeRun ? 4 : 2 },
  ...(isWholeRun
    ? [
        { paused: ["audio", "video"], times: 2 },
        { paused: ["video"], times: 2 },
      ]
    : []),
])("$paused paused $times times by replaceTrack(null) leaves nothing behind", { timeout: 120_000 }, async (of) => {
  const name = await headgate.newStream();
  const page = await chromium.open(headgate.whip(name));
  expect(await page.start()).toMatchObject({ status: 201 });
  await until("the client connects", async () => (await page.state()) === "connected");
  const startedAt = performance.now();
  const recording = await until("a recording", () => upstream.recording(name));
  const session = await until("the session", () => sessionOf(headgate, name));
  const passes = (ms: number) => mediaPasses(headgate, session, ms);
  await passes(BETWEEN_MS);
  const apartBeforeMs = await audioAhead(recording, COMPARED_MS);
  for (let n = 0; n < of.times; n++) {
    await page.page.evaluate(
      `(async () => {
        window.senders ??= broadcast.running().connection.getSenders().map((sender) => [sender, sender.track]);
        const paused = senders.filter(([, track]) => ${JSON.stringify(of.paused)}.includes(track.kind));
        await Promise.all(paused.map(([sender]) => sender.replaceTrack(null)));
        await new Promise((resolve) => setTimeout(resolve, ${PAUSE_MS})); // the length of the pause is what is tested
        await Promise.all(paused.map(([sender, track]) => sender.replaceTrack(track)));
      })()`,
    );
    await passes(BETWEEN_MS);
  }
  await passes(SETTLES_MS);
  const apartMs = (await audioAhead(recording, COMPARED_MS)) - apartBeforeMs;
  const wallMs = performance.now() - startedAt;
  await page.stop();
  await page.page.close();
  await until("the end", () => upstream.hasEnded(name));
  const packets = await packetsOf(upstream.recording(name) ?? "");
  expect(isMonotonic(packets), "decode times never go back").toBe(true);
  const [audio, video] = [ofTrack(packets, "audio"), ofTrack(packets, "video")];
  const span = (track: typeof audio) => (track.at(-1)?.dts ?? 0) - (track[0]?.dts ?? 0);
  const figures = { apartMs, audioMs: span(audio), videoMs: span(video), wallMs };
  console.log(`whip clocks ${JSON.stringify({ ...of, ...figures })}`);
  expect(Math.abs(figures.apartMs), JSON.stringify(figures)).toBeLessThanOrEqual(APART_LIMIT_MS);
  expect(Math.abs(figures.videoMs - wallMs), JSON.stringify(figures)).toBeLessThanOrEqual(WALL_LIMIT_MS);
});
