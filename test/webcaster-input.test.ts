// The media of the browser client, with devices in memory: whatever overlaps or fails, a device or screen that is not
// used is closed. Checked with the types of a browser, by tsconfig.browser.json.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { completeConfig, type MediaStreamConfig, type TrackKind } from "../ts/webcaster/config.ts";
import { MediaInput } from "../ts/webcaster/media-input.ts";
import type { WebcasterError } from "../ts/webcaster/pure/errors.ts";
import { type FakeDevices, stubMedia } from "./support/fake-media.ts";

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

async function openInput(mediaStreamCfg: MediaStreamConfig = {}): Promise<MediaInput> {
  const config = completeConfig({ serverUrl: "https://h", streamName: "n", inputCfg: { mediaStreamCfg } });
  const host = {
    async send(kind: TrackKind, track: MediaStreamTrack | null) {
      await beforeSending();
      sent[kind] = track;
    },
    reportError: (error: WebcasterError) => void errors.push(error),
  };
  const input = new MediaInput(host, config.inputCfg, { audio: false, video: false });
  await input.open();
  return input;
}

/** Lets everything happen that waits for no timer. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));
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
