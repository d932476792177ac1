// The browser client in Chromium against the real service, from a page of another site: everything a
// broadcaster does and everything that happens to one. ffmpeg plays, nginx-rtmp is the upstream, the customer
// is asked and notified.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startBroadcastNetwork } from "../../support/broadcast-network.ts";
import { run, until } from "../../support/child.ts";
import { gap } from "../../support/drop-outs.ts";
import { decodeComplaints, packetsOf, showsData } from "../../support/ffmpeg.ts";
import { firstVideoFrame, rateBecomes } from "../../support/growing-flv.ts";
import { isMonotonic, ofTrack, startsAtKeyframe } from "../../support/judge.ts";
import type { WebcasterPage } from "../../support/webcaster-page.ts";
import { openWebcasterStage, SMALL, type WebcasterStage } from "../../support/webcaster-stage.ts";
import { webCodecsComplaints } from "../../support/webcodecs.ts";
import { inWholeRun } from "../../support/whole-run.ts";

/** A browser needs five or six seconds to notice a dead path. */
const INTERRUPTED_LIMIT_MS = 15_000;

let stage: WebcasterStage;
beforeAll(async () => {
  stage = await openWebcasterStage();
}, 120_000);
afterAll(() => stage?.close());

const stateIs = (page: WebcasterPage, state: string, limitMs = 30_000) =>
  until(`the page is ${state}`, async () => (await page.state()) === state, limitMs);

test("with a web token a page of another site broadcasts, shares its screen, changes the quality and sends metadata", async () => {
  const name = await stage.headgate().newStream();
  const issued = await stage
    .headgate()
    .call("POST", "/webcaster", { streamname: name, ingesturl: stage.headgate().rtmp });
  const { token } = issued.data as { token: string };
  const page = await stage.site.open(stage.network.https, { auth: { token } });
  await page.run("webcaster.setup()");
  await page.run("webcaster.startPreview()");
  const clicked = performance.now();
  const firstFrame = firstVideoFrame(() => stage.upstream.recording(name));
  await page.run("webcaster.startBroadcast()");
  const liveMs = Math.round(performance.now() - clicked);
  const firstFrameMs = Math.round((await firstFrame) - clicked);
  const recording = await stage.recordingOf(name);

  // A player meanwhile.
  const complaints = decodeComplaints(`${stage.headgate().rtmp}/${name}`);

  await page.run("webcaster.sendMetadata('onCuePoint', { title: 'Finale', at: { seconds: 12 } })");
  await page.run(
    "void setInterval(() => webcaster.sendMetadata('onCuePoint', { title: 'Finale' }).catch(() => {}), 400)",
  );
  const data = showsData(`${stage.headgate().rtmp}/${name}`, "Finale");
  // The goal is 1,800 kbit/s after 3 s; a browser that shares its processor may stay a little below.
  const full = await rateBecomes(recording, (kbps) => kbps >= Number(process.env.WEBCASTER_FULL_KBPS ?? 1_400), 40_000);
  const fullAfterMs = Math.round(performance.now() - clicked) - liveMs;
  await page.run("webcaster.startScreenShare()");
  await page.run("webcaster.setUpstreamQuality({ maxVideoBitrateBps: 600_000 })");
  expect(await page.run("webcaster.isScreenShared")).toBe(true);
  const low = await rateBecomes(recording, (kbps) => kbps > 0 && kbps <= 700, 15_000);
  await page.run("webcaster.stopScreenShare()");
  const camera = await rateBecomes(recording, (kbps) => kbps > 350 && kbps <= 720, 15_000);
  await page.run("webcaster.setUpstreamQuality({ maxVideoBitrateBps: 2_000_000 })");
  const high = await rateBecomes(recording, (kbps) => kbps >= 1_200, 30_000);
  const { metrics, states, errors } = await page.said();
  await data;
  await page.run("webcaster.stopBroadcast()");
  await stage.doneOf(name);

  const packets = await packetsOf(recording);
  const keys = ofTrack(packets, "video").filter(({ isKey }) => isKey);
  const longestGopMs = Math.max(...keys.slice(1).map(({ dts }, at) => dts - (keys[at]?.dts ?? 0)));
  const figures = { liveMs, firstFrameMs, fullAfterMs, full, low, camera, high, longestGopMs };
  console.log(`webcaster ${JSON.stringify(figures)}`);
  // Goals on an idle machine, with WEBCASTER_FULL_KBPS=1800: 600 ms, 3 s, 5 s, 5 s, 2 s.
  expect(firstFrameMs).toBeLessThan(3_000);
  expect(low.ms).toBeLessThan(15_000);
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
  // ffmpeg comments on the metadata's own stream.
  expect((await complaints).replaceAll(/^.*New subtitle stream.*\n/gm, "")).toBe("");
  expect(await decodeComplaints(recording)).toBe("");
  expect(await webCodecsComplaints(page.page, recording)).toEqual([]);
  expect(stage.upstream.log().split(`publish: name='${name}'`)).toHaveLength(2);
  expect([states, errors]).toEqual([["preparing", "ready", "connecting", "live"], []]);
  expect(metrics.at(-1)).toMatchObject({
    state: "live",
    reconnects: 0,
    isHidden: false,
    video: { codec: "H264", height: 720 },
  });
  expect(stage.calls("publish", name)).toHaveLength(1);
  await page.page.close();
}, 120_000);

/** The error with which `expression` rejects. */
const refusal = (page: WebcasterPage, expression: string) =>
  page.run<{ code: number; status: number | null; detail: string | null; problem: string | null }>(
    `${expression}.then(() => null, ({ code, status, detail, problem }) => ({ code, status, detail, problem }))`,
  );

describe.concurrent("at the same time", () => {
  test("a network outage of 5 s interrupts the broadcast, and the same one continues", {
    timeout: 90_000,
  }, async () => {
    const through = await startBroadcastNetwork(stage.headgate().http, { hasMedia: true });
    const { name, page } = await stage.liveOn(through, { reconnect: true });
    await stage.recordingOf(name);
    through.cut();
    await gap(5_000);
    through.mend();
    const mended = performance.now();
    await until("it was interrupted", async () => (await page.said()).states.includes("recovering"));
    await stateIs(page, "live");
    console.log(`webcaster: live ${Math.round(performance.now() - mended)} ms after a network that was gone for 5 s`);
    await rateBecomes(await stage.recordingOf(name), (kbps) => kbps > 30, 20_000);
    const { states, errors, reconnections } = await page.said();
    // While its path checks are late it may be in doubt once more, before it is live again.
    expect(states.join(" ")).toMatch(/^preparing ready connecting live( recovering live)+$/);
    expect([errors, reconnections]).toEqual([[], []]);
    expect(stage.calls("publish", name)).toHaveLength(1);
    await page.page.close();
    await through.close();
  });

  inWholeRun("a lost network path is replaced within the same broadcast", { timeout: 90_000 }, async () => {
    const through = await startBroadcastNetwork(stage.headgate().http, { hasMedia: true });
    const { name, page } = await stage.liveOn(through);
    await stage.recordingOf(name);
    through.losePaths();
    const lost = performance.now();
    // Whether the page notices or the browser had another path already: video arrives, in the same publish.
    const isInterrupted = async () => (await page.said()).states.includes("recovering");
    await until("it was interrupted", isInterrupted, INTERRUPTED_LIMIT_MS).catch(() => {});
    await stateIs(page, "live");
    const how = (await isInterrupted()) ? "live over another path" : "found another path by itself, looked at";
    console.log(`webcaster: ${how} after ${Math.round(performance.now() - lost)} ms`);
    await rateBecomes(await stage.recordingOf(name), (kbps) => kbps > 30, 20_000);
    expect((await page.said()).errors).toEqual([]);
    expect(stage.calls("publish", name)).toHaveLength(1);
    await page.page.close();
    await through.close();
  });

  inWholeRun("after a network outage of 20 s a new broadcast starts", { timeout: 120_000 }, async () => {
    const through = await startBroadcastNetwork(stage.headgate().http, { hasMedia: true });
    const { name, page } = await stage.liveOn(through, { reconnect: true });
    through.cut();
    await gap(20_000);
    through.mend();
    const mended = performance.now();
    await stateIs(page, "live", 45_000);
    console.log(`webcaster: live ${Math.round(performance.now() - mended)} ms after a network that was gone for 20 s`);
    const { states, errors, reconnections } = await page.said();
    expect(states.slice(3)).toEqual(["live", "recovering", "reconnecting", "live"]);
    expect([errors, reconnections]).toEqual([[], ["reconnecting", "idle"]]);
    await until("the second publish", () => stage.calls("publish", name).length === 2);
    await until("the first one's end", () => stage.calls("publish_done", name).length === 1);
    await until("the metrics count it", async () => (await page.said()).metrics.at(-1)?.reconnects === 1);
    await page.page.close();
    await through.close();
  });

  test("a broadcast that the customer refuses fails with the customer's reason, and can be started again", async () => {
    const name = await stage.headgate().newStream();
    stage.denied.add(name);
    const page = await stage.site.open(stage.network.https, {
      streamName: name,
      ingestUrl: stage.headgate().rtmp,
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
    stage.denied.delete(name);
    await page.run("webcaster.startBroadcast()");
    expect(await page.state()).toBe("live");
    await page.page.close();
  }, 60_000);

  test("the page of a broadcast that the operator stops is told who and why within 2 s", async () => {
    const { name, page } = await stage.liveOn(stage.network);
    const stopped = performance.now();
    await stage.kick(name);
    await stateIs(page, "failed");
    const ms = Math.round(performance.now() - stopped);
    console.log(`webcaster: knows of its end after ${ms} ms`);
    expect((await page.said()).errors).toMatchObject([
      { code: 4010, message: "Ended through the API: Publish was ended by the operator" },
    ]);
    expect(ms).toBeLessThan(5_000);
    await page.page.close();
  }, 60_000);

  test("a page that is closed or left ends its broadcast immediately", async () => {
    for (const leave of ["close", "navigate"] as const) {
      const { name, page } = await stage.liveOn(stage.network);
      await stage.recordingOf(name);
      const left = performance.now();
      const gone = leave === "close" ? page.page.close() : page.page.goto(`${stage.site.origin}/empty`);
      await stage.doneOf(name);
      const ms = Math.round(performance.now() - left);
      await gone;
      console.log(`webcaster: publish_done ${ms} ms after ${leave}`);
      expect(ms).toBeLessThan(4_000);
      if (leave === "navigate") await page.page.close();
    }
  }, 60_000);

  test("each device failure of the browser has its own error number and remedy", async () => {
    const name = await stage.headgate().newStream();
    const config = { streamName: name, ingestUrl: stage.headgate().rtmp, ...SMALL };
    const barred = await stage.site.open(stage.network.https, config, { path: "/no-camera" });
    expect(await refusal(barred, "webcaster.setup()")).toMatchObject({ code: 2001 });
    expect((await barred.said()).states).toEqual(["preparing", "idle"]);
    await barred.page.close();

    const absent = { inputCfg: { mediaStreamCfg: { videoDeviceId: "none" } } };
    const missing = await stage.site.open(stage.network.https, { ...config, ...absent });
    expect(await refusal(missing, "webcaster.setup()")).toMatchObject({ code: 2004 });
    await missing.page.close();

    const without = await stage.site.open(stage.network.https, config, {
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
    expect(stage.calls("publish", name)).toHaveLength(0);
  }, 60_000);

  test("a browser without codec preferences broadcasts nevertheless", async () => {
    const name = await stage.headgate().newStream();
    const page = await stage.site.open(
      stage.network.https,
      { streamName: name, ingestUrl: stage.headgate().rtmp, ...SMALL },
      {
        prepared: `RTCRtpTransceiver.prototype.setCodecPreferences = () => { throw new TypeError("not here"); };`,
      },
    );
    await page.run("webcaster.setup()");
    await page.run("webcaster.startBroadcast()");
    await until("metrics", async () => (await page.said()).metrics.at(-1)?.video?.framesPerSecond);
    await page.page.close();
  }, 60_000);

  test("a camera that is unplugged is reported, and another replaces it in the same broadcast", async () => {
    const { name, page } = await stage.liveOn(stage.network);
    await page.run(`(() => {
      window.first = webcaster.getMediaStream().getVideoTracks()[0];
      first.stop();
      first.dispatchEvent(new Event("ended"));
    })()`);
    await until("another camera", () => page.run("webcaster.getMediaStream().getVideoTracks()[0] !== first"));
    expect((await page.said()).errors).toMatchObject([{ code: 2005 }]);
    const recording = await stage.recordingOf(name);
    await rateBecomes(recording, (kbps) => kbps > 30, 20_000);
    expect(stage.calls("publish", name)).toHaveLength(1);
    await page.page.close();
  }, 60_000);

  test("a camera that can be opened only once is released before the chosen one is opened", async () => {
    const { page } = await stage.liveOn(stage.network);
    await page.run(`(() => {
      const devices = navigator.mediaDevices;
      const open = devices.getUserMedia.bind(devices);
      window.first = webcaster.getMediaStream().getVideoTracks()[0];
      devices.getUserMedia = async (constraints) => {
        if (first.readyState === "live") throw new DOMException("in use", "NotReadableError");
        return await open(constraints);
      };
    })()`);
    await page.run("webcaster.setDevice('video')");
    expect(
      await page.run("webcaster.getMediaStream().getVideoTracks().map((track) => [track === first, track.readyState])"),
    ).toEqual([[false, "live"]]);
    expect((await page.said()).errors).toEqual([]);
    await page.page.close();
  }, 60_000);

  test("stopping a start immediately is not reported as an error, and leaves nothing live", async () => {
    const { name, page } = await stage.liveOn(stage.network);
    await page.run("webcaster.stopBroadcast()");
    const started = refusal(page, "webcaster.startBroadcast()");
    await until(
      "it connects",
      async () => (await page.said()).states.filter((state) => state === "connecting").length === 2,
    );
    await page.run("webcaster.stopBroadcast()");
    // The stop waits until the service has ended the publish. The connection may have been faster.
    expect([undefined, 1006]).toContain((await started)?.code);
    expect([await page.state(), (await page.said()).errors]).toEqual(["ready", []]);
    await until("every publish has ended", () => {
      return stage.calls("publish_done", name).length === stage.calls("publish", name).length;
    });
    await page.page.close();
  }, 60_000);

  test("audio alone is broadcast, and is not taken for a silent service", async () => {
    const { page } = await stage.liveOn(stage.network, { inputCfg: { mediaStreamCfg: { audioVideoOnly: "audio" } } });
    await until("some seconds", async () => ((await page.said()).metrics.at(-1)?.liveSec ?? 0) >= 7);
    const { states, metrics } = await page.said();
    expect([states.at(-1), states.includes("recovering"), metrics.at(-1)?.video]).toEqual(["live", false, null]);
    expect(await page.run("webcaster.getMediaStreamSettings().video")).toBeNull();
    await page.page.close();
  }, 60_000);

  test("a broadcast continues while muted and hidden", async () => {
    const { page } = await stage.liveOn(stage.network);
    await page.run("webcaster.setMuted({ audio: true })");
    await page.run("webcaster.setMuted({ video: true })");
    expect(await page.run("webcaster.isMuted()")).toEqual({ audio: true, video: true });
    await page.run(`(() => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
      document.dispatchEvent(new Event("visibilitychange"));
    })()`);
    const metrics = async () => (await page.said()).metrics.at(-1);
    const { liveSec } = await until("the metrics report it", async () => (await metrics())?.isHidden && metrics());
    await until("three seconds", async () => ((await metrics())?.liveSec ?? 0) >= liveSec + 3);
    expect((await page.said()).states.at(-1)).toBe("live");
    await page.run("webcaster.setMuted({ audio: false, video: false })");
    await page.run("webcaster.setTrack(document.createElement('canvas').captureStream(5).getVideoTracks()[0])");
    expect(await page.run("webcaster.getMediaStreamSettings().video.width")).toBe(300);
    await page.run("webcaster.recover()");
    expect([await page.state(), await page.run("webcaster.isMuted()")]).toEqual([
      "live",
      { audio: false, video: false },
    ]);
    await page.run("webcaster.stopBroadcast()");
    expect(await page.state()).toBe("ready");
    await page.run("webcaster.dispose()");
    expect(await page.state()).toBe("idle");
    await page.page.close();
  }, 60_000);
});

test("a laptop that slept while somebody ended its broadcast is told so when it wakes, and stays ended", async () => {
  const { name, page } = await stage.liveOn(stage.network, { reconnect: true });
  const wake = stage.chromium.sleep();
  try {
    await stage.kick(name);
    await stage.doneOf(name);
  } finally {
    wake();
  }
  await until("it knows", async () => (await page.said()).states.at(-1) === "failed");
  expect((await page.said()).errors).toMatchObject([{ code: 4010, detail: "Publish was ended by the operator" }]);
  expect(stage.calls("publish", name)).toHaveLength(1);
  await page.page.close();
}, 60_000);

test("a service that is killed and restarted has its broadcast back within 8 s", async () => {
  const { name, page } = await stage.liveOn(stage.network, { reconnect: true });
  await stage.recordingOf(name);
  const killed = performance.now();
  await stage.restart();
  const startedMs = Math.round(performance.now() - killed);
  await until("it is live again", async () => {
    const { states } = await page.said();
    return states.includes("reconnecting") && states.at(-1) === "live";
  });
  const ms = Math.round(performance.now() - killed);
  console.log(`webcaster: live ${ms} ms after a kill; the service was back after ${startedMs} ms`);
  // The goal is 8 s with a service that starts immediately; a busy machine takes longer for that.
  expect(ms - startedMs).toBeLessThan(12_000);
  const { reconnections, errors } = await page.said();
  expect([reconnections, errors]).toEqual([["reconnecting", "idle"], []]);
  expect(stage.calls("publish", name)).toHaveLength(2);
  await page.page.close();
}, 90_000);
