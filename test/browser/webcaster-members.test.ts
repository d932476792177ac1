// Unknown members of a configuration of the browser client: named in the console once, and never an error.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Config } from "../../ts/webcaster/config.ts";
import { CONFIG_MEMBERS, nameUnknownMembers } from "../../ts/webcaster/unknown-members.ts";
import { RtcUser } from "../../ts/webcaster/v5/rtc-user.ts";
import { Webcaster } from "../../ts/webcaster/webcaster.ts";

const CONFIG: Config = { serverUrl: "https://headgate.example", streamName: "Ab1Cd-9XyZ0" };

const warn = vi.fn();
beforeEach(() => {
  warn.mockReset();
  vi.stubGlobal("console", { ...console, warn });
});
afterEach(() => vi.unstubAllGlobals());

const construct = (more: object) => new Webcaster({ ...CONFIG, ...more });
const warnings = () => warn.mock.calls.map(([words]) => words);

test("are named with the members that lead to them, once however many pages use them", () => {
  for (let times = 0; times < 3; times += 1) {
    construct({ streamname: "x", inputCfg: { muted: { audoi: true }, broadcastCfg: { maxVideoBitrate: 1 } } });
  }
  expect(warnings()).toEqual([
    "Webcaster: streamname, inputCfg.muted.audoi, inputCfg.broadcastCfg.maxVideoBitrate are unknown and have no effect",
  ]);
  construct({ streamname: "x", constructor: 1 });
  expect(warnings().at(-1)).toBe("Webcaster: constructor is unknown and has no effect");
});

test("are not found in a configuration that uses everything", () => {
  construct({
    ...{ ingestUrl: "rtmp://h/live", auth: { token: "t" }, previewVideoElId: "v", metrics: { accountId: 1 } },
    reconnect: { minDelaySec: 1, maxDelaySec: 2, maxRetries: 3 },
    inputCfg: {
      ...{ mediaStream: null, muted: { audio: true, video: false } },
      mediaStreamCfg: { resolution: [1, 1], audioConstraints: { channelCount: 2, latency: 0.1 } },
      broadcastCfg: { transcodeAudioBitrateBps: 1, maxAudioBitrateBps: 1 },
    },
  });
  construct({ reconnect: true, inputCfg: null, auth: null });
  expect(warnings()).toEqual([]);
});

test("of the v5 API are named too, and stay without effect", () => {
  const user = new RtcUser();
  user.setConfig({ width: 640, bitrate: 1 } as object);
  user.setConfig(undefined as unknown as object);
  expect(warnings()).toEqual(["RtcUser.setConfig: bitrate is unknown and has no effect"]);
});

test("are named up to a limit", () => {
  for (let at = 0; at < 500; at += 1) nameUnknownMembers("Made up", { [`member${at}`]: 1 }, CONFIG_MEMBERS);
  expect(warn.mock.calls.length).toBeLessThanOrEqual(100);
});
