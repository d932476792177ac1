// Odd answers of a service, or of what stands before it, and how a lost broadcast is tried again; in Node with a peer
// connection in memory. Checked with the types of a browser, by tsconfig.browser.json.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Broadcast, type BroadcastHost } from "../../../ts/webcaster/broadcast.ts";
import type { WebcasterError } from "../../../ts/webcaster/pure/errors.ts";
import { RECONNECT_DEFAULT } from "../../../ts/webcaster/pure/reconnect.ts";
import { next, type StateEvent, type WebcasterState } from "../../../ts/webcaster/pure/state.ts";
import { WhipSession } from "../../../ts/webcaster/whip-session.ts";
import { stubMedia } from "../../support/fake-media.ts";

const ENDPOINT = "https://h/p/webrtc";
const SESSION = `${ENDPOINT}/1`;

class FakeTransport extends EventTarget {
  state = "connected";
}

let transport: FakeTransport;
/** Methods of all requests. */
let requests: string[];
let answer: (method: string) => Response | Promise<Response>;

const started = (body: BodyInit | null, location = SESSION) =>
  Object.defineProperty(new Response(body, { status: 201, headers: { location } }), "url", { value: ENDPOINT });

beforeEach(() => {
  transport = new FakeTransport();
  requests = [];
  vi.stubGlobal("document", { hidden: false });
  vi.stubGlobal("RTCRtpSender", {});
  vi.stubGlobal("fetch", async (_: string, { method = "" }: RequestInit) => {
    requests.push(method);
    return await answer(method);
  });
  vi.stubGlobal(
    "RTCPeerConnection",
    class extends EventTarget {
      connectionState = "new";
      createOffer = async () => ({ type: "offer", sdp: "a=rtpmap:1 H264/90000\r\na=rtpmap:2 opus/48000/2\r\n" });
      setLocalDescription = async () => {};
      getStats = async () => new Map();
      addTransceiver = () => ({ sender: new FakeSender(), setCodecPreferences() {} });
      async setRemoteDescription() {
        this.connectionState = "connected";
      }
      close() {}
    },
  );
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

class FakeSender {
  readonly transport = transport;
  getParameters = () => ({ encodings: [{}] });
  setParameters = async () => {};
  replaceTrack = async () => {};
}

/** A broadcast that was live, and is lost now. */
async function lostBroadcast() {
  const stream = (await stubMedia().getUserMedia({ audio: true, video: true })) as unknown as MediaStream;
  vi.useFakeTimers();
  answer = () => started("answer");
  let state: WebcasterState = "connecting";
  const errors: WebcasterError[] = [];
  const host: BroadcastHost = {
    get state() {
      return state;
    },
    options: () => ({
      endpoint: ENDPOINT,
      auth: null,
      stream,
      quality: { maxVideoBitrateBps: 1, maxEncodingFramerate: 1, scaleResolutionDownBy: 1, maxAudioBitrateBps: null },
    }),
    advance(event: StateEvent) {
      state = next(state, event) ?? state;
    },
    onConnectionState() {},
    onReconnectionState() {},
    onMetrics() {},
    onError: (error) => void errors.push(error),
  };
  const broadcast = new Broadcast(host, RECONNECT_DEFAULT);
  await broadcast.start();
  expect(state).toBe("live");
  requests = [];
  return {
    broadcast,
    errors,
    stateNow: () => state,
    offers: () => requests.filter((method) => method === "POST").length,
    async lose(then: typeof answer) {
      answer = then;
      transport.state = "closed";
      transport.dispatchEvent(new Event("statechange"));
      await vi.advanceTimersByTimeAsync(0);
      expect(state).toBe("reconnecting");
    },
  };
}

test("a Retry-After of years is no storm of requests, and no wait without an end", async () => {
  const { lose, offers } = await lostBroadcast();
  await lose(() => new Response(null, { status: 503, headers: { "retry-after": "99999999999" } }));
  await vi.advanceTimersByTimeAsync(120_000);
  expect(offers()).toBe(1);
  await vi.advanceTimersByTimeAsync(250_000);
  expect(offers()).toBe(2);
});

test("looking at the page while the network is away uses up none of the ten attempts", async () => {
  const { broadcast, lose, offers, stateNow, errors } = await lostBroadcast();
  await lose(() => Promise.reject(new TypeError("no network")));
  for (let looks = 0; looks < 20; looks += 1) {
    broadcast.wake();
    await vi.advanceTimersByTimeAsync(10);
  }
  expect([offers(), stateNow()]).toEqual([20, "reconnecting"]);
  await vi.advanceTimersByTimeAsync(200_000);
  expect([offers(), stateNow()]).toEqual([30, "failed"]);
  expect(errors).toMatchObject([{ reason: "reconnect_failed" }]);
});

test("an answer that breaks off is tried again later, and the session that it began is ended", async () => {
  const broken = new ReadableStream({ start: (controller) => controller.error(new TypeError("cut off")) });
  answer = (method) => (method === "POST" ? started(broken) : new Response(null));
  const opening = WhipSession.open(ENDPOINT, null, "offer");
  await expect(opening).rejects.toMatchObject({ reason: "unreachable", isTransient: true });
  expect(requests).toEqual(["POST", "DELETE"]);
});

test.each(["", "http://[", "//"])("an answer with the Location %j is none of a WHIP endpoint", async (location) => {
  answer = () => started("answer", location);
  const opening = WhipSession.open(ENDPOINT, null, "offer");
  await expect(opening).rejects.toMatchObject({ reason: "request_refused", status: 201 });
});
