// Cameras, microphones and screens on /broadcast: chosen, replaced, lost and found again.
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { BroadcastPage } from "../../support/broadcast-page.ts";
import { type BroadcastStage, openBroadcastStage } from "../../support/broadcast-stage.ts";
import { until } from "../../support/child.ts";

/** A browser, an encoder and a player share the machine with other load. */
vi.setConfig({ testTimeout: 60_000 });

let stage: BroadcastStage;

beforeAll(async () => {
  stage = await openBroadcastStage();
}, 60_000);
afterEach(() => stage.reset());
afterAll(() => stage?.close());

test("a shared screen replaces the camera while live, and the camera is off meanwhile", async () => {
  const { name, broadcast } = await stage.ready();
  const { page } = broadcast;
  await broadcast.press();
  await broadcast.reaches("live");
  await page.click("text=Mute");
  await page.click("text=Hide video");
  expect(await broadcast.says("#cover")).toBe("Your video is hidden Viewers see black.");
  await page.click("text=Show video");
  await page.click("text=Unmute");
  await page.click("#sources label:has-text('Screen')");
  await until("the screen is shared", async () => (await broadcast.tracks()).length === 3);
  await until("the camera is off", async () => (await broadcast.tracks()).includes("ended"));
  expect(await stage.playedVideo(name)).toBe("h264,1280,720");
  await page.click("#sources label:has-text('Camera')");
  await until("the camera is back", async () => {
    return [...(await broadcast.tracks())].sort().join() === "ended,ended,live,live";
  });
  expect(await broadcast.says("#badge")).toMatch(/^LIVE/);
  expect(await broadcast.says("#alerts")).toBe("");
});

/** Script that runs `then` before a device is opened whose constraints, `wanted`, meet the condition. `held` waits for
 *  `release()`. */
const whenOpening = (condition: string, then: string) => `void (() => {
  const { mediaDevices } = navigator;
  const open = mediaDevices.getUserMedia.bind(mediaDevices);
  const held = new Promise((resolve) => { window.release = () => resolve(); });
  mediaDevices.getUserMedia = async (wanted) => {
    if (${condition}) ${then};
    return await open(wanted);
  };
})()`;
/** Ends the first track of a kind as the browser does. */
const lose = (kind: "audio" | "video") => `void (() => {
  const track = recorded.tracks.find((one) => one.kind === "${kind}");
  track.stop();
  track.dispatchEvent(new Event("ended"));
})()`;
/** `readyState` of every camera and screen that was ever opened. */
const videos = ({ page }: Pick<BroadcastPage, "page">) =>
  page.evaluate("recorded.tracks.filter(({ kind }) => kind === 'video').map(({ readyState }) => readyState).join()");
const hasFrames = ({ says }: Pick<BroadcastPage, "says">) =>
  says("#figure-frame-rate").then((text) => /^[1-9]\d* fps$/.test(text));

test("going live while another camera is still opening waits for it, and viewers have video", async () => {
  const { name, broadcast } = await stage.ready();
  const { page } = broadcast;
  await page.waitForSelector("#camera option:nth-child(2)", { state: "attached" });
  // Chromium's second camera has no frames that could be encoded.
  await page.selectOption("#camera", { index: 1 });
  await until("the second camera is open", async () => (await videos({ page })) === "ended,live");
  await page.evaluate(whenOpening("wanted.video?.deviceId", "await held"));
  await page.selectOption("#camera", { index: 0 });
  await broadcast.press();
  expect(await broadcast.says("#status")).toBe("Going live once your device is open.");
  await page.evaluate("release()");
  await broadcast.reaches("live");
  expect(await stage.playedVideo(name)).toBe("h264,1280,720");
  expect(await videos({ page })).toBe("ended,ended,live");
});

test("a camera lost while live is sent again once it is connected, and when the one chosen instead is busy", async () => {
  const { broadcast } = await stage.ready();
  const { page } = broadcast;
  await page.waitForSelector("#camera option:nth-child(2)", { state: "attached" });
  await broadcast.press();
  await broadcast.reaches("live");
  await until("frames are sent", () => hasFrames(broadcast));
  await page.evaluate(lose("video"));
  expect(await broadcast.says("#alerts")).toContain("The camera was disconnected");
  await until("no frames are sent", async () => !(await hasFrames(broadcast)));
  await page.evaluate("void navigator.mediaDevices.dispatchEvent(new Event('devicechange'))");
  await until("the camera is open again", async () => (await videos({ page })) === "ended,live");
  await until("frames are sent", () => hasFrames(broadcast));
  expect(await broadcast.says("#alerts")).toBe("");

  const chosen = await page.inputValue("#camera");
  const other: string = await page.evaluate("document.querySelector('#camera option:not(:checked)').value");
  const isOther = `wanted.video?.deviceId?.exact === ${JSON.stringify(other)}`;
  await page.evaluate(whenOpening(isOther, 'throw new DOMException("busy", "NotReadableError")'));
  await page.selectOption("#camera", other);
  await until("the former camera is open again", async () => (await videos({ page })) === "ended,ended,live");
  expect(await broadcast.says("#alerts")).toContain("The camera or microphone cannot be opened");
  expect(await page.inputValue("#camera")).toBe(chosen);
});

test("the end of a shared screen opens no camera that was off before, and the screen can be shared again", async () => {
  const { page, ...broadcast } = await stage.open("/broadcast");
  await page.click("#sources label:has-text('Screen')");
  await broadcast.press();
  await broadcast.reaches("ready");
  await page.evaluate(lose("video"));
  expect(await broadcast.says("#alerts")).toContain("Your screen is no longer shared");
  expect(await videos({ page })).toBe("ended");
  await page.click("#sources label:has-text('Screen')");
  await until("the screen is shared again", async () => (await videos({ page })) === "ended,live");
});

test("with neither camera nor microphone nothing is sent, and the page says so", async () => {
  const { broadcast } = await stage.ready();
  const { page } = broadcast;
  await page.evaluate(lose("video"));
  await page.evaluate(lose("audio"));
  await broadcast.press();
  await until("the notice", async () => (await broadcast.says("#alerts")).startsWith("There is nothing to send"));
  expect(await page.getAttribute("body", "data-stage")).toBe("ready");
});
