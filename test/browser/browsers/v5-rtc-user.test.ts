// RtcUser, the v5 API for pages that still use it, in Chromium against the real service: from the token to
// the upstream, each numbered refusal, and an end by the service.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Chromium, startChromium } from "../../support/chromium.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { decodeComplaints, packetsOf } from "../../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { held } from "../../support/held.ts";
import { isMonotonic, ofTrack, startsAtKeyframe } from "../../support/judge.ts";
import { type NginxRtmp, startNginxRtmp } from "../../support/nginx-rtmp.ts";

const LIMIT_MS = 30_000;
const EVENTS = [
  "SignInSuccess",
  "SignInError",
  "StartBroadcastSuccess",
  "StartBroadcastError",
  "BroadcastStatus",
  "BroadcastError",
  "StopBroadcastSuccess",
  "StopBroadcastError",
];

interface Said {
  readonly name: string;
  readonly data: { readonly code?: number; readonly status?: string } | null;
}

interface UserPage {
  /** Runs an expression, which may await; `user` is available. */
  run<T = unknown>(expression: string): Promise<T>;
  said(): Promise<readonly Said[]>;
  /** Waits for the first event of this name. */
  heard(name: string, limitMs?: number): Promise<Said>;
  close(): Promise<void>;
}

let customer: Customer;
let upstream: NginxRtmp;
let headgate: Headgate;
let chromium: Chromium;

beforeAll(async () => {
  customer = await startCustomer();
  upstream = await startNginxRtmp();
  headgate = await startHeadgate({ customer, env: { HEADGATE_UPSTREAM_PUSH: `${upstream.url}/{name}` } });
  chromium = await startChromium();
}, 120_000);
beforeEach(() => customer.answer({ status: 200 }));
afterAll(async () => {
  await chromium?.close();
  await headgate?.stop();
  await upstream?.stop();
  await customer?.close();
});

/** A page of another site with a RtcUser of small video, and its events. */
async function openUser(): Promise<UserPage> {
  const { page } = await chromium.open("unused");
  const run = <T>(expression: string) => page.evaluate(`(async () => (${expression}))()`) as Promise<T>;
  await page.evaluate(`(async () => {
    const { RtcUser } = await import("${headgate.http}/sdk/rtcuser.mjs");
    const user = new RtcUser();
    user.setConfig({ width: 640, height: 360, framerate: 15, videoBitrate: 500_000 });
    const said = [];
    for (const name of ${JSON.stringify(EVENTS)}) user.on(name, (event) => said.push(event));
    Object.assign(window, { user, said });
  })()`);
  const said = () => run<readonly Said[]>("said");
  return {
    run,
    said,
    heard: (name, limitMs = LIMIT_MS) =>
      until(`a ${name}`, async () => (await said()).find((event) => event.name === name), limitMs),
    close: () => page.close(),
  };
}

async function tokenOf(streamname: string, exp?: number): Promise<string> {
  const issued = await headgate.call("POST", "/webcaster", { streamname, ingesturl: headgate.rtmp, exp });
  return (issued.data as { token: string }).token;
}

const statuses = async (page: UserPage) =>
  (await page.said()).filter(({ name }) => name === "BroadcastStatus").map(({ data }) => data?.status);
const isBroadcasting = (page: UserPage) =>
  until("it broadcasts", async () => (await statuses(page)).includes("broadcasting"), LIMIT_MS);
const text = (value: unknown) => JSON.stringify(value);
const callsOf = (call: string, name: string) =>
  customer.calls(call).filter(({ body }) => body.includes(`name=${name}`));

test("with a token the page goes live, mutes and unmutes, and stops: one publish that decodes without a complaint", async () => {
  const name = await headgate.newStream();
  const page = await openUser();
  expect(await page.run("user.checkSupport()")).toBe(true);
  const devices = await page.run<{ audio: unknown[]; video: unknown[] }>("user.getDevices()");
  expect([devices.audio.length, devices.video.length].every((count) => count > 0)).toBe(true);
  await page.run(`user.startPreview("preview")`);
  const token = await tokenOf(name);
  expect(await page.run(`user.signIn({ server: ${text(headgate.http)}, jwt: ${text(token)} })`)).toBe(true);
  expect(await page.run(`user.startBroadcast({ jwt: ${text(token)} })`)).toBe(true);
  await isBroadcasting(page);
  const recording = await until("the recording", () => upstream.recording(name), LIMIT_MS);
  const isSilent = () => page.run(`document.querySelector("#preview").srcObject.getAudioTracks()[0].enabled`);
  await page.run("user.muteAudio()");
  expect(await isSilent()).toBe(false);
  await page.run("user.muteAudio(false)");
  await until("some seconds", async () => ofTrack(await packetsOf(recording), "audio").length > 150, LIMIT_MS);
  expect(await page.run("user.stopBroadcast()")).toBe(true);
  const doneOf = () => callsOf("publish_done", name);
  await until("publish_done", () => doneOf().length > 0, LIMIT_MS);
  await page.run("user.signOut()");
  expect((await page.said()).map(({ name: event }) => event)).toStrictEqual([
    "SignInSuccess",
    "BroadcastStatus",
    "StartBroadcastSuccess",
    "BroadcastStatus",
    "BroadcastStatus",
    "StopBroadcastSuccess",
  ]);
  expect(await statuses(page)).toStrictEqual(["signalling", "connected", "broadcasting"]);
  const packets = await packetsOf(recording);
  expect([startsAtKeyframe(packets), isMonotonic(packets)]).toStrictEqual([true, true]);
  expect(await decodeComplaints(recording)).toBe("");
  expect(doneOf()).toHaveLength(1);
  await page.close();
}, 180_000);

describe("a refusal has its error number", () => {
  test("when the token is invalid, an API key, or expired", async () => {
    const page = await openUser();
    const name = await headgate.newStream();
    const expired = await tokenOf(name, Math.floor(Date.now() / 1_000) + 2);
    await until("it has expired", () => Number(JSON.parse(atob(expired.split(".")[1] ?? "")).exp) * 1_000 < Date.now());
    for (const [jwt, code] of [
      ["no.token.at-all", 103003],
      [headgate.apiKey, 103003],
      [expired, 103002],
    ] as const) {
      expect(await page.run(`user.signIn({ server: ${text(headgate.http)}, jwt: ${text(jwt)} })`)).toBe(false);
      expect((await page.said()).at(-1)).toMatchObject({ name: "SignInError", data: { code } });
    }
    await page.close();
  }, 60_000);

  test("when the token is for another stream, nobody is signed in, or the customer denies", async () => {
    const page = await openUser();
    const [name, other] = [await headgate.newStream(), await headgate.newStream()];
    const token = await tokenOf(name);
    const start = (options: object) => page.run(`user.startBroadcast(${text(options)})`);
    expect(await start({ jwt: token })).toBe(false);
    expect((await page.said()).at(-1)).toMatchObject({ name: "StartBroadcastError", data: { code: 107001 } });
    expect(await page.run(`user.signIn({ server: ${text(headgate.http)}, jwt: ${text(token)} })`)).toBe(true);
    expect(await start({ jwt: token, transcodingTargets: { streamname: other } })).toBe(false);
    expect((await page.said()).at(-1)).toMatchObject({ name: "StartBroadcastError", data: { code: 103004 } });
    customer.answer({ status: 403, body: "Your plan is over\n", headers: { "content-type": "text/plain" } });
    expect(await start({ jwt: token })).toBe(false);
    const data = { code: 102001, message: "Your plan is over" };
    expect((await page.said()).at(-1)).toMatchObject({ name: "StartBroadcastError", data });
    await page.close();
  }, 60_000);
});

test("an end by the service is a BroadcastError immediately, and the page may start again", async () => {
  const page = await openUser();
  const stream = (await headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  const token = await tokenOf(stream.ingest.rtmp.streamname);
  await page.run(`user.signIn({ server: ${text(headgate.http)}, jwt: ${text(token)} })`);
  expect(await page.run("user.startBroadcast({})")).toBe(true);
  await isBroadcasting(page);
  await headgate.call("PUT", `/stream/${stream.id}/stop`);
  expect(await page.heard("BroadcastError", 5_000)).toMatchObject({
    data: { code: 4711, message: "Stream was locked: Stream was stopped", ended: { ended_by: "lock", final: true } },
  });
  await headgate.call("PUT", `/stream/${stream.id}/unlock`);
  expect(await page.run("user.startBroadcast({})")).toBe(true);
  await page.close();
}, 120_000);

test("a page that awaits nothing keeps its preview through signIn, and broadcasts devices that are still opening", async () => {
  const page = await openUser();
  const token = await tokenOf(await headgate.newStream());
  const signIn = `user.signIn({ server: ${text(headgate.http)}, jwt: ${text(token)} })`;
  const shown = `document.querySelector("#preview").srcObject?.getVideoTracks()[0]?.readyState`;
  expect(await page.run(`(user.startPreview("preview"), ${signIn})`)).toBe(true);
  await until("the preview", async () => (await page.run(shown)) === "live", LIMIT_MS);
  await page.run("user.stopPreview()");
  expect(await page.run(`(user.startPreview("preview"), user.startBroadcast({ jwt: ${text(token)} }))`)).toBe(true);
  expect(await page.run(shown)).toBe("live");
  await page.close();
}, 60_000);

describe("a start that is stopped never goes live, and the page may start again", () => {
  test("when the customer has not answered yet: the service ends what it then allows", async () => {
    const name = await headgate.newStream();
    const page = await openUser();
    const token = await tokenOf(name);
    await page.run(`user.startPreview("preview")`);
    await page.run(`user.signIn({ server: ${text(headgate.http)}, jwt: ${text(token)} })`);
    const { promise, release } = held();
    customer.answer(async ({ call }) => {
      if (call === "publish") await promise;
      return { status: 200 };
    });
    await page.run("void (window.started = user.startBroadcast({}))");
    await until("the customer is asked", () => callsOf("publish", name).length > 0, LIMIT_MS);
    await page.run("void (window.stopped = user.stopBroadcast())");
    release();
    expect(await page.run("Promise.all([started, stopped])")).toStrictEqual([false, true]);
    await until("publish_done", () => callsOf("publish_done", name).length > 0, 2_000);
    const said = (await page.said()).map(({ name: event, data }) => [event, data?.status ?? data?.code]);
    expect(said.slice(1)).toStrictEqual([
      ["BroadcastStatus", "signalling"],
      ["StartBroadcastError", 1006],
      ["StopBroadcastSuccess", undefined],
    ]);
    expect(await page.run("user.startBroadcast({})")).toBe(true);
    await isBroadcasting(page);
    expect(callsOf("publish_done", name)).toHaveLength(1);
    await page.close();
  }, 60_000);

  test("when the browser has not answered the offer yet, and never will", async () => {
    const name = await headgate.newStream();
    const page = await openUser();
    const token = await tokenOf(name);
    await page.run(`user.signIn({ server: ${text(headgate.http)}, jwt: ${text(token)} })`);
    await page.run(`void (() => {
      const { prototype } = RTCPeerConnection;
      window.createAnswer = prototype.createAnswer;
      prototype.createAnswer = () => {
        window.isAnswering = true;
        return new Promise(() => {});
      };
    })()`);
    await page.run("void (window.started = user.startBroadcast({}))");
    await until("it answers", () => page.run<boolean>("window.isAnswering === true"), LIMIT_MS);
    expect(await page.run("Promise.all([user.stopBroadcast(), started])")).toStrictEqual([true, false]);
    await until("publish_done", () => callsOf("publish_done", name).length > 0, 2_000);
    await page.run("void (RTCPeerConnection.prototype.createAnswer = createAnswer)");
    expect(await page.run("user.startBroadcast({})")).toBe(true);
    await page.close();
  }, 60_000);
});
