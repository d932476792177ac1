// The browser client in Chromium against the real service, from a page of another site: everything a broadcaster does
// and everything that happens to one. ffmpeg plays, nginx-rtmp is the upstream, the customer is asked and told.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BroadcastNetwork, startBroadcastNetwork } from "./support/broadcast-network.ts";
import { run, until } from "./support/child.ts";
import { type Chromium, startChromium } from "./support/chromium.ts";
import { type Customer, startCustomer } from "./support/customer.ts";
import { decodeComplaints, packetsOf } from "./support/ffmpeg.ts";
import { freePort } from "./support/free-port.ts";
import { firstVideoFrame, rateBecomes } from "./support/growing-flv.ts";
import { type Headgate, startHeadgate } from "./support/headgate.ts";
import { isMonotonic, ofTrack, startsAtKeyframe } from "./support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "./support/nginx-rtmp.ts";
import { trustFile } from "./support/trust-file.ts";
import { serveWebcasterSite, type WebcasterPage, type WebcasterSite } from "./support/webcaster-page.ts";

/** A small picture for tests that are about something else. */
const SMALL = {
  inputCfg: {
    mediaStreamCfg: { resolution: [320, 180], maxFramerate: 10 },
    broadcastCfg: { maxVideoBitrateBps: 150_000 },
  },
};

/** Streams whose publish the customer refuses. */
const denied = new Set<string>();
const dataDir = mkdtempSync(join(tmpdir(), "headgate-webcaster-"));
let rtmpPort: number;
let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
let chromium: Chromium;
/** HTTPS in front of the service. */
let network: BroadcastNetwork;
let site: WebcasterSite;

beforeAll(async () => {
  customer = await startCustomer();
  customer.answer(({ body }) => {
    const isDenied = [...denied].some((name) => body.includes(`name=${name}&`));
    const why = { body: "Your subscription is over\n", headers: { "content-type": "text/plain" } };
    return isDenied ? { status: 403, ...why } : { status: 200 };
  });
  upstream = await startNginxRtmp();
  rtmpPort = await freePort();
  headgate = await startHeadgate({ customer, env: settings() });
  chromium = await startChromium(["--ignore-certificate-errors"]);
  network = await startBroadcastNetwork(headgate.http);
  site = await serveWebcasterSite(chromium);
}, 120_000);
afterAll(async () => {
  await chromium?.close();
  await headgate?.stop();
  await Promise.all([network?.close(), site?.close(), upstream?.stop(), customer?.close()]);
  rmSync(dataDir, { recursive: true, force: true });
});

function settings() {
  return {
    HEADGATE_DATA_DIR: dataDir,
    // The same after a restart: pages name it.
    HEADGATE_RTMP_PORT: String(rtmpPort),
    HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}`,
    HEADGATE_WEBHOOK_CA: trustFile(customer.ca),
  };
}

const calls = (call: string, name: string) => customer.calls(call).filter(({ body }) => body.includes(`name=${name}&`));
const doneOf = (name: string) => until("publish_done", () => calls("publish_done", name)[0], 20_000);
const stateIs = (page: WebcasterPage, state: string, limitMs = 30_000) =>
  until(`the page is ${state}`, async () => (await page.state()) === state, limitMs);
const recordingOf = (name: string) => until("the recording", () => upstream.recording(name));

/** A page that is live. */
async function liveOn(through: BroadcastNetwork, config: object = {}): Promise<{ name: string; page: WebcasterPage }> {
  const name = await headgate.newStream();
  const page = await site.open(through.https, { streamName: name, ingestUrl: headgate.rtmp, ...SMALL, ...config });
  await page.run("webcaster.setup()");
  await page.run("webcaster.startBroadcast()");
  return { name, page };
}

test("with a web token a page of another site broadcasts, shares its screen, changes the quality and sends metadata", async () => {
  const name = await headgate.newStream();
  const issued = await headgate.call("POST", "/webcaster", { streamname: name, ingesturl: headgate.rtmp });
  const { token } = issued.data as { token: string };
  const page = await site.open(network.https, { auth: { token } });
  await page.run("webcaster.setup()");
  await page.run("webcaster.startPreview()");
  const clicked = performance.now();
  const firstFrame = firstVideoFrame(() => upstream.recording(name));
  await page.run("webcaster.startBroadcast()");
  const liveMs = Math.round(performance.now() - clicked);
  const firstFrameMs = Math.round((await firstFrame) - clicked);
  const recording = await recordingOf(name);

  // What plays meanwhile.
  const complaints = decodeComplaints(`${headgate.rtmp}/${name}`);
  const selectData = ["-select_streams", "s", "-show_packets", "-show_data", "-of", "json"];
  const data = run("ffprobe", ["-v", "error", ...selectData, `${headgate.rtmp}/${name}`]);

  const full = await rateBecomes(recording, (kbps) => kbps >= 1_800, 15_000);
  const fullAfterMs = Math.round(performance.now() - clicked) - liveMs;
  await page.run("webcaster.startScreenShare()");
  await page.run("webcaster.setUpstreamQuality({ maxVideoBitrateBps: 600_000 })");
  expect(await page.run("webcaster.isScreenShared")).toBe(true);
  const low = await rateBecomes(recording, (kbps) => kbps > 0 && kbps <= 700, 15_000);
  await page.run("webcaster.sendMetadata('onCuePoint', { title: 'Finale', at: { seconds: 12 } })");
  await page.run("webcaster.stopScreenShare()");
  const camera = await rateBecomes(recording, (kbps) => kbps > 350 && kbps <= 720, 15_000);
  await page.run("webcaster.setUpstreamQuality({ maxVideoBitrateBps: 2_000_000 })");
  const high = await rateBecomes(recording, (kbps) => kbps >= 1_500, 15_000);
  const { metrics, states, errors } = await page.said();
  await page.run("webcaster.stopBroadcast()");
  await doneOf(name);

  const packets = await packetsOf(recording);
  const keys = ofTrack(packets, "video").filter(({ isKey }) => isKey);
  const longestGopMs = Math.max(...keys.slice(1).map(({ dts }, at) => dts - (keys[at]?.dts ?? 0)));
  const figures = { liveMs, firstFrameMs, fullAfterMs, full, low, camera, high, longestGopMs };
  console.log(`webcaster ${JSON.stringify(figures)}`);
  // Goals on an idle machine: 600 ms, 3 s, 5 s, 5 s, 2 s.
  expect(firstFrameMs).toBeLessThan(3_000);
  expect(fullAfterMs).toBeLessThan(8_000);
  expect(low.ms).toBeLessThan(8_000);
  expect(high.ms).toBeLessThan(8_000);
  expect(longestGopMs).toBeLessThanOrEqual(2_600);
  expect(startsAtKeyframe(packets)).toBe(true);
  expect(isMonotonic(packets)).toBe(true);
  const probe = await run("ffprobe", [
    "-v",
    "error",
    "-show_entries",
    "frame=width,height",
    "-of",
    "csv=p=0",
    recording,
  ]);
  expect([...new Set(probe.stdout().match(/\d+,\d+/g))]).toEqual(["1280,720"]);
  // ffmpeg remarks on the metadata's own stream.
  expect((await complaints).replace(/^.*New subtitle stream.*\n/m, "")).toBe("");
  expect(await decodeComplaints(recording)).toBe("");
  expect((await data).stdout().replaceAll(/[^!-~]/g, "")).toContain("Finale");
  expect(upstream.log().split(`publish: name='${name}'`)).toHaveLength(2);
  expect([states, errors]).toEqual([["preparing", "ready", "connecting", "live"], []]);
  expect(metrics.at(-1)).toMatchObject({
    state: "live",
    reconnects: 0,
    isHidden: false,
    video: { codec: "H264", height: 720 },
  });
  expect(calls("publish", name)).toHaveLength(1);
  await page.page.close();
}, 120_000);

/** What `expression` rejects with. */
const refusal = (page: WebcasterPage, expression: string) =>
  page.run<{ code: number; status: number | null; detail: string | null; problem: string | null }>(
    `${expression}.then(() => null, ({ code, status, detail, problem }) => ({ code, status, detail, problem }))`,
  );

describe.concurrent("at the same time", () => {
  test("a network that is gone for 5 s interrupts the broadcast, and the same one goes on", {
    timeout: 90_000,
  }, async () => {
    const through = await startBroadcastNetwork(headgate.http, { hasMedia: true });
    const { name, page } = await liveOn(through, { reconnect: true });
    await recordingOf(name);
    through.cut();
    await pause(5_000);
    through.mend();
    const mended = performance.now();
    await until("it was interrupted", async () => (await page.said()).states.includes("recovering"));
    await stateIs(page, "live");
    console.log(`webcaster: live ${Math.round(performance.now() - mended)} ms after a network that was gone for 5 s`);
    await rateBecomes(await recordingOf(name), (kbps) => kbps > 30, 20_000);
    const { states, errors, reconnections } = await page.said();
    expect([states, errors, reconnections]).toEqual([
      ["preparing", "ready", "connecting", "live", "recovering", "live"],
      [],
      [],
    ]);
    expect(calls("publish", name)).toHaveLength(1);
    await page.page.close();
    await through.close();
  });

  test("a network that is gone for 20 s is a new broadcast as soon as it is back", { timeout: 120_000 }, async () => {
    const through = await startBroadcastNetwork(headgate.http, { hasMedia: true });
    const { name, page } = await liveOn(through, { reconnect: true });
    through.cut();
    await pause(20_000);
    through.mend();
    const mended = performance.now();
    await stateIs(page, "live", 45_000);
    console.log(`webcaster: live ${Math.round(performance.now() - mended)} ms after a network that was gone for 20 s`);
    const { states, errors, reconnections } = await page.said();
    expect(states.slice(3)).toEqual(["live", "recovering", "reconnecting", "live"]);
    expect([errors, reconnections]).toEqual([[], ["reconnecting", "idle"]]);
    await until("the second publish", () => calls("publish", name).length === 2);
    await until("the first one's end", () => calls("publish_done", name).length === 1);
    await until("metrics count it", async () => (await page.said()).metrics.at(-1)?.reconnects === 1);
    await page.page.close();
    await through.close();
  });

  test("a broadcast that the customer refuses fails with the customer's reason, and can be tried again", async () => {
    const name = await headgate.newStream();
    denied.add(name);
    const page = await site.open(network.https, {
      streamName: name,
      ingestUrl: headgate.rtmp,
      reconnect: true,
      ...SMALL,
    });
    await page.run("webcaster.setup()");
    expect(await refusal(page, "webcaster.startBroadcast()")).toEqual({
      code: 4001,
      status: 403,
      detail: "Your subscription is over",
      problem: "rejected_by_customer",
    });
    const { states, errors } = await page.said();
    expect(states.at(-1)).toBe("failed");
    expect(errors).toEqual([
      {
        code: 4001,
        message: "The broadcast was not allowed: Your subscription is over",
        detail: "Your subscription is over",
      },
    ]);
    denied.delete(name);
    await page.run("webcaster.startBroadcast()");
    expect(await page.state()).toBe("live");
    await page.page.close();
  }, 60_000);

  test("a broadcast that the operator stops is over for its page within 2 s", async () => {
    const { name, page } = await liveOn(network);
    const sessions = (await headgate.call("GET", "/session")) as unknown as { client_id: number; streamname: string }[];
    const clientId = sessions.find(({ streamname }) => streamname === name)?.client_id;
    const stopped = performance.now();
    await headgate.call("POST", `/session/${clientId}/kick`);
    await stateIs(page, "failed");
    const ms = Math.round(performance.now() - stopped);
    console.log(`webcaster: knows of its end after ${ms} ms`);
    expect((await page.said()).errors).toMatchObject([{ code: 5004 }]);
    expect(ms).toBeLessThan(5_000);
    await page.page.close();
  }, 60_000);

  test("a page that is closed or left ends its broadcast at once", async () => {
    for (const leave of ["close", "navigate"] as const) {
      const { name, page } = await liveOn(network);
      await recordingOf(name);
      const left = performance.now();
      if (leave === "close") await page.page.close();
      else await page.page.goto(`${site.origin}/empty`);
      await doneOf(name);
      const ms = Math.round(performance.now() - left);
      console.log(`webcaster: publish_done ${ms} ms after ${leave}`);
      expect(ms).toBeLessThan(4_000);
      if (leave === "navigate") await page.page.close();
    }
  }, 60_000);

  test("what the browser does not give has its own number and remedy", async () => {
    const name = await headgate.newStream();
    const config = { streamName: name, ingestUrl: headgate.rtmp, ...SMALL };
    const barred = await site.open(network.https, config, { path: "/no-camera" });
    expect(await refusal(barred, "webcaster.setup()")).toMatchObject({ code: 2001 });
    expect((await barred.said()).states).toEqual(["preparing", "idle"]);
    await barred.page.close();

    const absent = { inputCfg: { mediaStreamCfg: { videoDeviceId: "none" } } };
    const missing = await site.open(network.https, { ...config, ...absent });
    expect(await refusal(missing, "webcaster.setup()")).toMatchObject({ code: 2004 });
    await missing.page.close();

    const without = await site.open(network.https, config, {
      prepared: `{
        const prefer = RTCRtpTransceiver.prototype.setCodecPreferences;
        RTCRtpTransceiver.prototype.setCodecPreferences = function () {
          const { codecs } = RTCRtpSender.getCapabilities("video");
          prefer.call(this, codecs.filter(({ mimeType }) => mimeType === "video/VP8"));
        };
      }`,
    });
    await without.run("webcaster.setup()");
    expect(await refusal(without, "webcaster.startBroadcast()")).toMatchObject({ code: 3002 });
    expect((await without.said()).errors[0]?.message).toContain("OpenH264");
    await without.page.close();
    expect(calls("publish", name)).toHaveLength(0);
  }, 60_000);

  test("a browser that takes no codec preferences broadcasts all the same", async () => {
    const name = await headgate.newStream();
    const page = await site.open(
      network.https,
      { streamName: name, ingestUrl: headgate.rtmp, ...SMALL },
      {
        prepared: `RTCRtpTransceiver.prototype.setCodecPreferences = () => { throw new TypeError("not here"); };`,
      },
    );
    await page.run("webcaster.setup()");
    await page.run("webcaster.startBroadcast()");
    await until("metrics", async () => (await page.said()).metrics.at(-1)?.video?.framesPerSecond);
    await page.page.close();
  }, 60_000);

  test("a camera that is unplugged is reported, and another takes its place in the same broadcast", async () => {
    const { name, page } = await liveOn(network);
    await page.run(`(() => {
      window.first = webcaster.getMediaStream().getVideoTracks()[0];
      first.stop();
      first.dispatchEvent(new Event("ended"));
    })()`);
    await until("another camera", () => page.run("webcaster.getMediaStream().getVideoTracks()[0] !== first"));
    expect((await page.said()).errors).toMatchObject([{ code: 2005 }]);
    const recording = await recordingOf(name);
    await rateBecomes(recording, (kbps) => kbps > 30, 20_000);
    expect(calls("publish", name)).toHaveLength(1);
    await page.page.close();
  }, 60_000);

  test("muted and hidden, a broadcast goes on", async () => {
    const { page } = await liveOn(network);
    await page.run("webcaster.setMuted({ audio: true })");
    await page.run("webcaster.setMuted({ video: true })");
    expect(await page.run("webcaster.isMuted()")).toEqual({ audio: true, video: true });
    await page.run(`(() => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
      document.dispatchEvent(new Event("visibilitychange"));
    })()`);
    await until("the metrics say so", async () => (await page.said()).metrics.at(-1)?.isHidden);
    await pause(3_000);
    expect((await page.said()).states.at(-1)).toBe("live");
    await page.run("webcaster.setMuted({ audio: false, video: false })");
    await page.run("webcaster.stopBroadcast()");
    expect(await page.state()).toBe("ready");
    await page.run("webcaster.dispose()");
    expect(await page.state()).toBe("idle");
    await page.page.close();
  }, 60_000);
});

test("a laptop that slept while the service ended the broadcast makes a new one when it wakes", async () => {
  const { name, page } = await liveOn(network, { reconnect: true });
  const wake = chromium.sleep();
  try {
    const sessions = (await headgate.call("GET", "/session")) as unknown as { client_id: number; streamname: string }[];
    const clientId = sessions.find(({ streamname }) => streamname === name)?.client_id;
    await headgate.call("POST", `/session/${clientId}/kick`);
    await doneOf(name);
  } finally {
    wake();
  }
  await until("it is live again", async () => {
    const { states } = await page.said();
    return states.includes("reconnecting") && states.at(-1) === "live";
  });
  expect(calls("publish", name)).toHaveLength(2);
  await page.page.close();
}, 60_000);

test("a service that is killed and started again has its broadcast back within 8 s", async () => {
  const { name, page } = await liveOn(network, { reconnect: true });
  await recordingOf(name);
  const killed = performance.now();
  headgate.process.kill("SIGKILL");
  await headgate.process.exit;
  // Without a customer: its webhook is in the store already.
  headgate = await startHeadgate({ env: settings() });
  network.leadTo(headgate.http);
  const startedMs = Math.round(performance.now() - killed);
  await until("it is live again", async () => {
    const { states } = await page.said();
    return states.includes("reconnecting") && states.at(-1) === "live";
  });
  const ms = Math.round(performance.now() - killed);
  console.log(`webcaster: live ${ms} ms after a kill; the service was back after ${startedMs} ms`);
  // The goal is 8 s with a service that starts at once; a busy machine takes longer for that.
  expect(ms - startedMs).toBeLessThan(12_000);
  const { reconnections, errors } = await page.said();
  expect([reconnections, errors]).toEqual([["reconnecting", "idle"], []]);
  expect(calls("publish", name)).toHaveLength(2);
  await page.page.close();
}, 90_000);
