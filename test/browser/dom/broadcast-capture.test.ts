// Camera, microphone and screen of /broadcast, with devices in memory. Checked with the types of a browser, by
// tsconfig.browser.json.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createCapture, NothingShared } from "../../../ts/broadcast/capture.ts";
import { STANDARD } from "../../../ts/broadcast/qualities.ts";
import { type FakeDevices, stubMedia } from "../../support/fake-media.ts";

const SCREEN = { source: "screen", cameraId: "", microphoneId: "", quality: STANDARD } as const;

let devices: FakeDevices;
beforeEach(() => {
  devices = stubMedia();
});
afterEach(() => {
  vi.unstubAllGlobals();
});

/** What opening a screen and the microphone rejects with when the browser refuses one of them. */
function openRefusing(refused: "screen" | "microphone"): Promise<unknown> {
  devices.beforeOpening = (constraints) => {
    if ((constraints === "screen") === (refused === "screen")) throw new DOMException("refused", "NotAllowedError");
  };
  const capture = createCapture(navigator.mediaDevices, () => {});
  return capture.open(SCREEN).catch((error: unknown) => error);
}

test("a closed screen picker is told apart from a blocked microphone", async () => {
  expect(await openRefusing("screen")).toBeInstanceOf(NothingShared);
  expect(await openRefusing("microphone")).toMatchObject({ name: "NotAllowedError" });
});

test("a screen whose microphone is blocked is not left open", async () => {
  await openRefusing("microphone");
  expect(devices.opened.map(({ label, readyState }) => `${label} ${readyState}`)).toStrictEqual(["screen ended"]);
});
