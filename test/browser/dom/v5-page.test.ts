// What a page of the v5 API does to its client: handlers that throw, settings that change while a preview is on, a service
// that never answers; in Node with sockets and devices in memory. Checked with the types of a browser.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RtcUser } from "../../../ts/webcaster/v5/rtc-user.ts";
import { type FakeDevices, stubMedia } from "../../support/fake-media.ts";
import { FakeSocket } from "../../support/fake-socket.ts";
import { held } from "../../support/held.ts";

/** Accepts every sign-in. */
class AcceptingSocket extends FakeSocket {
  constructor() {
    super();
    socket = this;
  }

  override send(text: string): void {
    super.send(text);
    if (this.calls.at(-1)?.type === "sign_in") queueMicrotask(() => this.reply({ session_id: "1", user_id: "2" }));
  }
}

class FakeVideo {
  srcObject: unknown = null;
  play = async () => {};
}

let socket: AcceptingSocket;
let devices: FakeDevices;
let reported: unknown[];
let user: RtcUser;

beforeEach(() => {
  devices = stubMedia();
  reported = [];
  vi.stubGlobal("WebSocket", AcceptingSocket);
  vi.stubGlobal("HTMLVideoElement", FakeVideo);
  vi.stubGlobal("reportError", (error: unknown) => void reported.push(error));
  user = new RtcUser();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function signIn(): Promise<boolean> {
  const signedIn = user.signIn({ server: "https://h", jwt: "token" });
  socket.open();
  return await signedIn;
}

test("a handler that throws is reported as the page's own error: nothing ends, and the other handlers are called", async () => {
  const thrown = new Error("of the page");
  const heard: string[] = [];
  user.on("SignInSuccess", () => {
    throw thrown;
  });
  user.on("SignInSuccess", ({ name }) => heard.push(name));
  user.on("SignInError", ({ name }) => heard.push(name));
  expect(await signIn()).toBe(true);
  expect([heard, reported, socket.readyState]).toStrictEqual([["SignInSuccess"], [thrown], FakeSocket.OPEN]);
});

test("a service that neither accepts nor refuses the socket is unreachable after 15 s", async () => {
  vi.useFakeTimers();
  const signedIn = user.signIn({ server: "https://h", jwt: "token" });
  await vi.advanceTimersByTimeAsync(15_000);
  expect([await signedIn, socket.readyState]).toStrictEqual([false, 2]);
  expect(vi.getTimerCount()).toBe(0);
});

test("another camera is used from the next preview or broadcast on, and the former one is closed", async () => {
  const video = new FakeVideo() as unknown as HTMLVideoElement;
  const openedAs = () => devices.requests.map(({ video: of }) => (of as MediaTrackConstraints).deviceId);
  user.setConfig({ videoDevice: "front" });
  await user.startPreview(video);
  await user.startPreview(video);
  expect(openedAs()).toEqual([{ exact: "front" }]);
  user.setConfig({ videoDevice: "back" });
  await user.startPreview(video);
  expect(openedAs()).toEqual([{ exact: "front" }, { exact: "back" }]);
  expect(devices.opened.map(({ readyState }) => readyState)).toEqual(["ended", "ended", "live", "live"]);

  await signIn();
  user.setConfig({ videoDevice: "third" });
  void user.startBroadcast({ jwt: "token" });
  await vi.waitFor(() => expect(socket.calls.map(({ type }) => type)).toContain("start_broadcast"));
  expect((video.srcObject as MediaStream).getTracks()).toEqual(devices.opened.slice(4));
  // What is being sent keeps its devices.
  user.setConfig({ videoDevice: "fourth" });
  await user.startPreview(video);
  expect(openedAs()).toHaveLength(3);
  void user.stopBroadcast();
});

test("a preview that moves to another element is gone from the former one", async () => {
  const [one, other] = [new FakeVideo(), new FakeVideo()];
  for (const video of [one, other]) await user.startPreview(video as unknown as HTMLVideoElement);
  expect([one.srcObject, other.srcObject === null]).toEqual([null, false]);
});

test("a preview that is still opening when the settings change shows the devices of the new ones", async () => {
  const video = new FakeVideo() as unknown as HTMLVideoElement;
  const { promise, release } = held();
  devices.beforeOpening = () => promise;
  const former = user.startPreview(video);
  user.setConfig({ videoDevice: "back" });
  const other = user.startPreview(video);
  release();
  await Promise.all([former, other]);
  expect(devices.opened.map(({ readyState }) => readyState)).toEqual(["ended", "ended", "live", "live"]);
  expect((video.srcObject as MediaStream).getTracks()).toEqual(devices.opened.slice(2));
});
