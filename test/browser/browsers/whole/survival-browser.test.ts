// A browser tab that is closed during a broadcast, or loses its network, and its successor: Chromium by WHIP,
// ffmpeg by RTMP, and back. nginx-rtmp is the upstream and records.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type BroadcasterNetwork, openBroadcasterNetwork } from "../../../support/broadcaster-network.ts";
import { until } from "../../../support/child.ts";
import { type Broadcaster, type Chromium, startChromium } from "../../../support/chromium.ts";
import {
  encoderOf,
  gap,
  judgeRecording,
  LOOK_EVERY_MS,
  mediaPasses,
  publishesAt,
  type Session,
  sessionOf,
} from "../../../support/drop-outs.ts";
import { packetsOf } from "../../../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../../../support/headgate.ts";
import { ofTrack } from "../../../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../../../support/nginx-rtmp.ts";
import { openWebcasterStage, SMALL } from "../../../support/webcaster-stage.ts";

let upstream: NginxRtmp;
let headgate: Headgate;
let chromium: Chromium;
let network: BroadcasterNetwork;

beforeAll(async () => {
  upstream = await startNginxRtmp();
  network = await openBroadcasterNetwork();
  const env = {
    HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`,
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
    HEADGATE_HTTP_HOST: network.host,
    HEADGATE_RTMP_HOST: network.host,
    HEADGATE_MEDIA_HOST: network.host,
  };
  headgate = await startHeadgate({ env });
  // As an organisation sets it: the service of the tests holds nothing by default.
  await headgate.call("PUT", "/organisation/settings", { hold_s: 60 });
  chromium = await startChromium();
}, 120_000);
afterAll(async () => {
  await chromium?.close();
  await headgate?.stop();
  await upstream?.stop();
  await network?.close();
});

/** A tab that broadcasts; its publish is a different one from `before`. */
async function openTab(
  name: string,
  before?: number,
  browser = chromium,
): Promise<{ readonly tab: Broadcaster; readonly session: Session }> {
  const tab = await browser.open(headgate.whip(name));
  await until("the offer is answered", async () => (await tab.start()).status === 201, 30_000);
  const session = await until(
    "it sends media",
    async () => {
      const found = await sessionOf(headgate, name);
      return found !== undefined && found.client_id !== before && found.timestamp_ms > 0 ? found : null;
    },
    30_000,
  );
  return { tab, session };
}

const isOver = (name: string) =>
  until("the publish is over", async () => (await sessionOf(headgate, name)) === undefined);

test("a closed tab is succeeded by an encoder and that by a tab, on one connection to the upstream", {
  timeout: 180_000,
}, async () => {
  const name = await headgate.newStream();
  const first = await openTab(name);
  await mediaPasses(headgate, first.session, 3_000);
  await first.tab.page.close();
  // Chromium sends nothing at its end; after five silent seconds another publish may take the name.
  const second = await encoderOf(headgate, name, { before: first.session.client_id });
  expect(second.session.continues).toBe(first.session.client_id);
  await mediaPasses(headgate, second.session, 3_000);
  second.encoder.kill("SIGKILL");
  await isOver(name);
  const third = await openTab(name, second.session.client_id);
  expect(third.session.continues).toBe(second.session.client_id);
  await mediaPasses(headgate, third.session, 3_000);
  expect(upstream.hasEnded(name)).toBe(false);
  await headgate.call("POST", `/session/${third.session.client_id}/kick`);
  await until("the upstream connection ends", () => upstream.hasEnded(name), 30_000);
  expect(publishesAt(upstream, name)).toBe(1);
  const recording = upstream.recording(name) ?? "";
  const judged = await judgeRecording(recording);
  console.log(`tab, encoder, tab ${JSON.stringify(judged)}`);
  expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
  expect(judged.audioHoleMs).toBeLessThan(20_000);
  const video = ofTrack(await packetsOf(recording), "video");
  expect(video.filter(({ isKey }) => isKey).length).toBeGreaterThanOrEqual(3);
});

test("a tab whose network returns in time continues, and a new one does when the publish was already lost", {
  timeout: 180_000,
}, async ({ skip }) => {
  if (!network.hasUdp) skip("no network namespace here");
  const inside = await startChromium([], network);
  try {
    const name = await headgate.newStream();
    const first = await openTab(name, undefined, inside);
    for (const how of ["link", "path"] as const) {
      await mediaPasses(headgate, first.session, 2_000);
      const before = (await sessionOf(headgate, name))?.timestamp_ms ?? 0;
      network.cut(how);
      await gap(4_000);
      expect((await sessionOf(headgate, name))?.timestamp_ms, "nothing passes").toBeLessThan(before + 2_000);
      network.restore();
      const goesOn = async () => ((await sessionOf(headgate, name))?.timestamp_ms ?? 0) > before + 5_000;
      await until("it continues", goesOn);
      expect((await sessionOf(headgate, name))?.client_id).toBe(first.session.client_id);
    }
    network.cut("link");
    await until("it is lost", async () => (await sessionOf(headgate, name)) === undefined, 45_000);
    network.restore();
    const second = await openTab(name, first.session.client_id, inside);
    expect(second.session.continues).toBe(first.session.client_id);
    await mediaPasses(headgate, second.session, 2_000);
    await headgate.call("POST", `/session/${second.session.client_id}/kick`);
    await until("the upstream connection ends", () => upstream.hasEnded(name), 30_000);
    expect(publishesAt(upstream, name)).toBe(1);
    const judged = await judgeRecording(upstream.recording(name) ?? "");
    console.log(`tab without network ${JSON.stringify(judged)}`);
    expect(judged).toMatchObject({ isMonotonic: true, complaints: "" });
  } finally {
    await inside.close();
  }
});

test("a page of the browser client that is closed ends immediately, and the next one continues", {
  timeout: 180_000,
}, async () => {
  const stage = await openWebcasterStage();
  try {
    const service = stage.headgate();
    await service.call("PUT", "/organisation/settings", { hold_s: 60 });
    const { name, page } = await stage.liveOn(stage.network);
    await stage.recordingOf(name);
    const first = await until("it sends media", () => liveAt(service, name), 30_000, LOOK_EVERY_MS);
    await page.page.close();
    await until("it is over", async () => (await sessionOf(service, name)) === undefined, 5_000);
    expect(stage.upstream.hasEnded(name)).toBe(false);
    const config = { streamName: name, ingestUrl: service.rtmp, ...SMALL };
    const next = await stage.site.open(stage.network.https, config);
    await next.run("webcaster.setup()");
    await next.run("webcaster.startBroadcast()");
    const second = await until("it sends media again", () => liveAt(service, name), 30_000, LOOK_EVERY_MS);
    expect(second.continues).toBe(first.client_id);
    await mediaPasses(service, second, 2_000);
    await next.run("webcaster.stopBroadcast()");
    await until("the upstream connection ends", () => stage.upstream.hasEnded(name), 10_000);
    expect(publishesAt(stage.upstream, name)).toBe(1);
  } finally {
    await stage.close();
  }
});

async function liveAt(service: Headgate, name: string): Promise<Session | null> {
  const found = await sessionOf(service, name);
  return found !== undefined && found.timestamp_ms > 0 ? found : null;
}
