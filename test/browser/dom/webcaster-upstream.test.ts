// The connection of the browser client before its offer is posted, in Node with a peer connection in memory. Checked with
// the types of a browser, by tsconfig.browser.json.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Upstream, type UpstreamOptions } from "../../../ts/webcaster/upstream.ts";
import { stubMedia } from "../../support/fake-media.ts";
import { held } from "../../support/held.ts";

let isClosed: boolean;
/** Waits before an offer is made. */
let beforeOffer: () => Promise<void>;
const fetched = vi.fn(() => Promise.reject(new TypeError("no network")));

beforeEach(() => {
  isClosed = false;
  beforeOffer = async () => {};
  fetched.mockClear();
  stubMedia();
  vi.stubGlobal("fetch", fetched);
  vi.stubGlobal(
    "RTCPeerConnection",
    class {
      async createOffer() {
        await beforeOffer();
        return { type: "offer", sdp: "" };
      }
      close() {
        isClosed = true;
      }
    },
  );
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const EVENTS = { onConnectionState() {}, onInterrupted() {}, onEnded() {} };
const optionsOf = (token: () => Promise<string>, signal: AbortSignal): UpstreamOptions => ({
  endpoint: "https://h/p/webrtc",
  auth: { token },
  stream: new MediaStream(),
  quality: { maxVideoBitrateBps: 1, maxEncodingFramerate: 1, scaleResolutionDownBy: 1, maxAudioBitrateBps: null },
  signal,
});

test("a stop does not wait for a token that never arrives", async () => {
  const stop = new AbortController();
  const neverArriving = () => {
    setTimeout(() => stop.abort(), 0);
    return new Promise<string>(() => {});
  };
  await expect(Upstream.open(optionsOf(neverArriving, stop.signal), EVENTS)).rejects.toThrow();
  expect([isClosed, fetched.mock.calls]).toStrictEqual([true, []]);
});

test("a broadcast that is stopped while its offer is made is not requested", async () => {
  const stop = new AbortController();
  const { promise, release } = held();
  beforeOffer = () => {
    stop.abort();
    return promise;
  };
  const opening = Upstream.open(
    optionsOf(async () => "token", stop.signal),
    EVENTS,
  );
  release();
  await expect(opening).rejects.toMatchObject({ reason: "stopped" });
  expect([isClosed, fetched.mock.calls]).toStrictEqual([true, []]);
});

test("a token that does not arrive in time is missing, which a later attempt may mend", async () => {
  const limit = vi.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort(new Error("too late")));
  const opening = Upstream.open(
    optionsOf(() => new Promise(() => {}), new AbortController().signal),
    EVENTS,
  );
  await expect(opening).rejects.toMatchObject({ reason: "token_missing", isTransient: true, detail: "too late" });
  expect(limit).toHaveBeenCalledWith(60_000);
  limit.mockRestore();
  expect([isClosed, fetched.mock.calls]).toStrictEqual([true, []]);
});

test.each([
  ["nothing", undefined, "It got none"],
  ["an empty text", " ", "It got none"],
  ["the login page", "<!doctype html>\n<title>Log in</title>", "It got another text"],
])("a page that gets %s in place of a token has no token, which a later attempt may mend", async (_, got, detail) => {
  const token = async () => got as string;
  const opening = Upstream.open(optionsOf(token, new AbortController().signal), EVENTS);
  await expect(opening).rejects.toMatchObject({ reason: "token_missing", isTransient: true, detail });
  expect([isClosed, fetched.mock.calls]).toStrictEqual([true, []]);
});

test("a stream without tracks is refused by the client, and the service is not asked", async () => {
  const options = optionsOf(async () => "token", new AbortController().signal);
  await expect(Upstream.open(options, EVENTS)).rejects.toMatchObject({ reason: "nothing_to_send", isTransient: false });
  expect([isClosed, fetched.mock.calls]).toStrictEqual([true, []]);
});
