// The media of the browser client, with devices in memory: whatever overlaps or fails, a device or screen that is not
// used is closed. Checked with the types of a browser, by tsconfig.browser.json.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { completeConfig, type MediaStreamConfig, type TrackKind } from "../../../ts/webcaster/config.ts";
import { MediaInput } from "../../../ts/webcaster/media-input.ts";
import { WebcasterError } from "../../../ts/webcaster/pure/errors.ts";
import { type FakeDevices, FakeTrack, stubMedia } from "../../support/fake-media.ts";
import { held } from "../../support/held.ts";

let devices: FakeDevices;
/** The track being sent, of each kind; null for none. */
let sent: Record<string, unknown>;
/** Waits before a track is sent; a rejection refuses it. */
let beforeSending: () => Promise<void>;
let errors: WebcasterError[];

beforeEach(() => {
  devices = stubMedia();
  sent = {};
  errors = [];
  beforeSending = async () => {};
});
afterEach(() => {
  vi.unstubAllGlobals();
});

function newInput(mediaStreamCfg: MediaStreamConfig = {}): MediaInput {
  const config = completeConfig({ serverUrl: "https://h", streamName: "n", inputCfg: { mediaStreamCfg } });
  const host = {
    async send(kind: TrackKind, track: MediaStreamTrack | null) {
      await beforeSending();
      sent[kind] = track;
    },
    reportError: (error: WebcasterError) => void errors.push(error),
  };
  return new MediaInput(host, config.inputCfg, { audio: false, video: false });
}

async function openInput(mediaStreamCfg: MediaStreamConfig = {}): Promise<MediaInput> {
  const input = newInput(mediaStreamCfg);
  await input.open();
  return input;
}

/** Lets everything happen that waits for no timer. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));
/** The reason why a call is refused. */
const reasonOf = (call: Promise<void>) =>
  call.then(
    () => null,
    ({ reason }: WebcasterError) => reason,
  );
const lastVideo = () => devices.opened.findLast(({ kind }) => kind === "video");

test("a configured camera that is unplugged is replaced by another one", async () => {
  await openInput({ videoDeviceId: "configured", audioDeviceId: "microphone" });
  const camera = lastVideo();
  devices.beforeOpening = (constraints) => {
    if (JSON.stringify(constraints).includes("configured")) throw new DOMException("gone", "OverconstrainedError");
  };
  camera?.lose();
  await settled();
  expect(errors.map(({ reason }) => reason)).toStrictEqual(["device_lost"]);
  expect(lastVideo()).not.toBe(camera);
  expect(sent["video"]).toBe(lastVideo());
});

test.each(["setDevice", "startScreenShare"] as const)(
  "what %s opens is closed when the broadcast cannot send it",
  async (name) => {
    const input = await openInput();
    const camera = lastVideo();
    beforeSending = () => Promise.reject(new WebcasterError("wrong_state"));
    const call = name === "setDevice" ? input.setDevice("video", null) : input.startScreenShare({});
    expect(await reasonOf(call)).toBe("wrong_state");
    expect(lastVideo()).not.toBe(camera);
    expect([camera?.readyState, lastVideo()?.readyState, input.isScreenShared]).toStrictEqual(["live", "ended", false]);
  },
);

test("a camera that was sent before a failed screen share is closed when another one replaces it", async () => {
  const input = await openInput();
  const camera = lastVideo();
  beforeSending = () => Promise.reject(new WebcasterError("wrong_state"));
  await reasonOf(input.startScreenShare({}));
  beforeSending = async () => {};
  await input.setDevice("video", null);
  expect([camera?.readyState, lastVideo()?.readyState]).toStrictEqual(["ended", "live"]);
});

test.each(["setDevice", "startScreenShare"] as const)(
  "what %s opens after dispose() is closed, and not sent",
  async (name) => {
    const input = await openInput();
    const { promise, release } = held();
    devices.beforeOpening = () => promise;
    const call = reasonOf(name === "setDevice" ? input.setDevice("video", null) : input.startScreenShare({}));
    input.dispose(false);
    const before = sent["video"];
    release();
    expect(await call).toBe("wrong_state");
    expect(sent["video"]).toBe(before);
    expect(devices.opened.map(({ readyState }) => readyState)).toStrictEqual(["ended", "ended", "ended"]);
  },
);

test("a track whose sending dispose() overtakes is closed", async () => {
  const input = await openInput();
  const { promise, release } = held();
  beforeSending = () => promise;
  const call = reasonOf(input.setDevice("video", null));
  await settled();
  input.dispose(false);
  release();
  expect(await call).toBe("wrong_state");
  expect(devices.opened.map(({ readyState }) => readyState)).toStrictEqual(["ended", "ended", "ended"]);
});

test("devices that dispose() overtakes while the first is sent are all closed", async () => {
  const { promise, release } = held();
  beforeSending = () => promise;
  const input = newInput();
  const call = reasonOf(input.open());
  await settled();
  input.dispose(false);
  release();
  expect(await call).toBe("wrong_state");
  expect(devices.opened.map(({ readyState }) => readyState)).toStrictEqual(["ended", "ended"]);
});

test("a microphone that is muted while it replaces another is sent muted", async () => {
  const input = await openInput();
  const { promise, release } = held();
  beforeSending = () => promise;
  const call = input.setDevice("audio", null);
  await settled();
  input.setMuted({ audio: true, video: false });
  release();
  await call;
  expect(devices.opened.at(-1)).toMatchObject({ kind: "audio", readyState: "live", enabled: false });
});

test("of two cameras chosen one right after the other, only the last stays open", async () => {
  const input = await openInput();
  await Promise.all([input.setDevice("video", "a"), input.setDevice("video", "b")]);
  const cameras = devices.opened.filter(({ kind }) => kind === "video");
  expect(cameras.map(({ readyState }) => readyState)).toStrictEqual(["ended", "ended", "live"]);
  expect(sent["video"]).toBe(cameras.at(-1));
});

test("a camera that opens later than one chosen after it is closed, and not sent", async () => {
  const input = await openInput();
  const { promise, release } = held();
  devices.beforeOpening = (constraints) => (JSON.stringify(constraints).includes("slow") ? promise : undefined);
  const slow = input.setDevice("video", "slow");
  await input.setDevice("video", "fast");
  const fast = lastVideo();
  release();
  await slow;
  expect(sent["video"]).toBe(fast);
  expect([fast?.readyState, lastVideo()?.readyState]).toStrictEqual(["live", "ended"]);
});

test("a camera that is slow to open is sent if the one chosen after it cannot be opened", async () => {
  const input = await openInput();
  const { promise, release } = held();
  devices.beforeOpening = (constraints) => {
    if (JSON.stringify(constraints).includes("slow")) return promise;
    throw new DOMException("gone", "NotFoundError");
  };
  const slow = input.setDevice("video", "slow");
  expect(await reasonOf(input.setDevice("video", "gone"))).toBe("device_missing");
  release();
  await slow;
  expect(sent["video"]).toBe(lastVideo());
});

test.each(["setDevice", "setTrack"] as const)(
  "a replacement of a lost microphone that opens after a %s is closed, and not sent",
  async (name) => {
    const input = await openInput();
    const { promise, release } = held();
    devices.beforeOpening = (constraints) => (JSON.stringify(constraints).includes("headset") ? undefined : promise);
    devices.opened.find(({ kind }) => kind === "audio")?.lose();
    const headset = new FakeTrack("audio", "headset");
    if (name === "setDevice") await input.setDevice("audio", "headset");
    else await input.setTrack(headset as unknown as MediaStreamTrack);
    const chosen = sent["audio"];
    // Connecting the headset is such a change, too.
    devices.dispatchEvent(new Event("devicechange"));
    release();
    await settled();
    expect(sent["audio"]).toBe(chosen);
    expect(input.track("audio")).toMatchObject({ readyState: "live" });
  },
);

test("a shared screen is closed when it is stopped, though the camera is gone; the next camera connected is sent", async () => {
  const input = await openInput();
  const camera = lastVideo();
  await input.startScreenShare({});
  const screen = lastVideo();
  camera?.lose();
  devices.beforeOpening = () => Promise.reject(new DOMException("none", "NotFoundError"));
  expect(await reasonOf(input.stopScreenShare())).toBe("device_missing");
  expect([screen?.readyState, input.isScreenShared]).toStrictEqual(["ended", false]);
  devices.beforeOpening = () => {};
  devices.dispatchEvent(new Event("devicechange"));
  await settled();
  expect(lastVideo()).not.toBe(screen);
  expect([sent["video"], input.stream.getVideoTracks()]).toStrictEqual([lastVideo(), [lastVideo()]]);
});

test("without a camera before, the end of a shared screen opens none and leaves audio alone", async () => {
  const input = await openInput({ audioVideoOnly: "audio" });
  await input.startScreenShare({});
  const screen = lastVideo();
  screen?.lose();
  await settled();
  expect(devices.requests).toHaveLength(1);
  expect(sent).toMatchObject({ audio: devices.opened[0], video: null });
  expect([input.isScreenShared, input.track("video"), input.stream.getVideoTracks()]).toStrictEqual([false, null, []]);
  expect(errors).toStrictEqual([]);
});

test("the camera is sent again when the browser ends the sharing", async () => {
  const input = await openInput();
  const camera = lastVideo();
  await input.startScreenShare({});
  expect(sent["video"]).toBe(lastVideo());
  lastVideo()?.lose();
  await settled();
  expect([sent["video"], camera?.readyState, input.isScreenShared]).toStrictEqual([camera, "live", false]);
});
