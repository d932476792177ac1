// The texts of /broadcast: links, words of each state, figures, hints, levels. Without a browser.
import { expect, test } from "vitest";
import { figuresOf } from "../../ts/broadcast/figures.ts";
import { NOTHING_SEEN, watchOn } from "../../ts/broadcast/hints.ts";
import { levelOf } from "../../ts/broadcast/level.ts";
import { readLink, tokenIn } from "../../ts/broadcast/link.ts";
import { failureNotice, tokenNotice } from "../../ts/broadcast/notices.ts";
import { QUALITIES, STANDARD } from "../../ts/broadcast/qualities.ts";
import type { PageState, Stage } from "../../ts/broadcast/state.ts";
import { clockOf, durationOf, wordsOf } from "../../ts/broadcast/words.ts";
import { PROBLEM_CODES } from "../../ts/http/whip/problem-page.ts";
import { ERRORS, type ErrorName } from "../../ts/webcaster/pure/errors.ts";
import type { ConnectionMetrics, Metrics, VideoMetrics } from "../../ts/webcaster/pure/metrics.ts";

const STAGES: readonly Stage[] = ["off", "opening", "ready", "connecting", "live", "reconnecting", "ended"];
const link = { kind: "token", token: "a.b.c", streamName: "Ab1Cd-9XyZ0" } as const;
const state: PageState = {
  stage: "off",
  isWaiting: false,
  link,
  title: null,
  organisation: null,
  logo: null,
  streamName: "",
  address: "rtmp://in.example/live",
  choice: { source: "camera", cameraId: "", microphoneId: "", quality: STANDARD },
  devices: { cameras: [], microphones: [] },
  canShareScreen: true,
  has: { audio: true, video: true },
  muted: { audio: false, video: false },
  sendsAudio: true,
  sendsVideo: true,
  notice: null,
  hint: null,
  figures: null,
  liveSeconds: 0,
};

function tokenOf(claims: object): string {
  return `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
}

function metrics(video: Partial<VideoMetrics>, connection: Partial<ConnectionMetrics> = {}): Metrics {
  return {
    ...{ timestampMs: 0, state: "live", liveSec: 1, reconnects: 0, isHidden: false },
    video: {
      ...{
        codec: "H264",
        bitrateBps: 2_000_000,
        targetBitrateBps: null,
        framesPerSecond: 25,
        width: 1280,
        height: 720,
      },
      ...{ keyframes: 1, encodeMs: null, sendDelayMs: null, limitedBy: "none", ...video },
    },
    audio: { codec: "opus", bitrateBps: 64_000, level: null },
    connection: {
      ...{ roundTripMs: 20, packetLossPercent: 0, jitterMs: null, availableBitrateBps: 5_000_000, transport: "udp" },
      ...connection,
    },
  };
}

/** The hint after each of `readings`. */
function hintsOf(readings: readonly Metrics[]): (string | null)[] {
  let watch = NOTHING_SEEN;
  return readings.map((reading) => {
    watch = watchOn(watch, reading, STANDARD.videoBitrate);
    return watch.hint?.title ?? null;
  });
}
const times = <T>(count: number, value: T) => Array.from({ length: count }, () => value);

test("a link shows its stream name without the custom arguments, which may be passwords", () => {
  const token = tokenOf({ streamname: "Ab1Cd-9XyZ0?passcode=grüße" });
  expect(readLink(tokenIn(`#token=${token}`))).toEqual({ ...link, token });
});

test.each(["", "#", "#other=1"])("the fragment %j is not a link", (fragment) => {
  expect(readLink(tokenIn(fragment))).toEqual({ kind: "none" });
});

test.each(["", "abc", "a.b", "a.!!.c", "e30.e30.e30", tokenOf({ streamname: 1 }), "e30.bnVsbA.e30"])(
  "the token %j is reported as damaged",
  (token) => expect(readLink(token)).toEqual({ kind: "broken" }),
);

test.each(STAGES)("while %s the button says what it does, and only the live stages claim to be live", (stage) => {
  const { badge, primary, cover, status } = wordsOf({ ...state, stage });
  expect(primary.label).not.toBe("");
  expect(badge === "LIVE").toBe(stage === "live");
  expect(cover === null).toBe(["off", "ready", "connecting", "live", "reconnecting"].includes(stage));
  expect(status.includes("You are live on Ab1Cd-9XyZ0")).toBe(stage === "live");
});

test("while a device opens before going live, the button is busy and the status says why", () => {
  const { primary, status } = wordsOf({ ...state, stage: "ready", isWaiting: true });
  expect(primary).toEqual({ label: "Go live", does: "go-live", isBusy: true });
  expect(status).toBe("Going live once your device is open.");
});

test("a camera is offered in place of missing video, except while live without any", () => {
  const textOf = (change: Partial<PageState>) =>
    wordsOf({ ...state, has: { audio: true, video: false }, ...change }).cover?.text;
  expect(textOf({ stage: "ready", sendsVideo: false })).toBe("Choose a camera or your screen.");
  expect(textOf({ stage: "live", sendsVideo: true })).toBe("Choose a camera or your screen.");
  expect(textOf({ stage: "live", sendsVideo: false })).toBe("Viewers can only hear you.");
});

test("durations are short on the badge and in words in a sentence", () => {
  expect([7, 187, 3_723].map(clockOf)).toEqual(["0:07", "3:07", "1:02:03"]);
  expect([7, 187, 3_723].map(durationOf)).toEqual(["7 s", "3 min 7 s", "1 h 2 min"]);
});

test("figures have units, and a dash while they are unknown", () => {
  expect(figuresOf(metrics({}))).toEqual({
    ...{ bitrate: "2.1 Mbps", "frame-rate": "25 fps", resolution: "1280×720", "round-trip": "20 ms", loss: "0 %" },
  });
  const { loss } = figuresOf(metrics({}, { packetLossPercent: 0.4 }));
  expect(loss).toBe("0.4 %");
  const unknown = figuresOf({ ...metrics({}), video: null, audio: null, connection: null });
  expect(new Set(Object.values(unknown))).toEqual(new Set(["–"]));
});

test("a problem is shown once it has lasted five seconds, and hidden once it has been absent for as long", () => {
  const busy = metrics({ limitedBy: "cpu" });
  const said = hintsOf([...times(5, busy), ...times(5, metrics({})), ...times(4, busy)]);
  const title = "This device is too busy";
  expect(said).toEqual([...times(4, null), ...times(5, title), ...times(5, null)]);
});

test.each([
  ["an encoder that is overloaded", metrics({ limitedBy: "cpu" }), "This device is too busy"],
  [
    "an uplink that is too slow",
    metrics({ limitedBy: "bandwidth" }, { availableBitrateBps: 700_000 }),
    "upload is too slow",
  ],
  ["loss", metrics({}, { packetLossPercent: 8 }), "network is losing data"],
  ["a long round trip", metrics({}, { roundTripMs: 1_200 }), "network responds slowly"],
  ["TCP", metrics({}, { transport: "tcp" }), "blocks UDP"],
])("%s is explained in plain words", (_, reading, words) => {
  expect(hintsOf(times(5, reading)).at(-1)).toContain(words);
});

test("a slow start is not reported as a slow uplink", () => {
  expect(hintsOf(times(9, metrics({ limitedBy: "bandwidth" }, { availableBitrateBps: 3_000_000 }))).at(-1)).toBeNull();
});

/** Refusals that no broadcaster of this page can meet, or that have no better words than their own detail. */
const OWN_WORDS =
  /^(offer_|parameter_|bad_parameter|unsupported|unknown_(session|address)|precondition|bad_(frag|meta)|body_|method_)/;

test.each(Object.keys(PROBLEM_CODES).filter((code) => !OWN_WORDS.test(code)))(
  "the refusal %s has its own text",
  (problem) => {
    const { title, remedy } = failureNotice({ reason: "denied", problem, detail: "detail" });
    expect(title).not.toBe("The broadcast could not start");
    expect(remedy).toMatch(/\.$/);
  },
);

test("a customer's reason is quoted; without one nothing is quoted", () => {
  const refused = { reason: "denied", problem: "rejected_by_customer" } as const;
  expect(failureNotice({ ...refused, detail: "No money" }).quote).toBe("No money");
  expect(failureNotice({ ...refused, detail: "Publish denied" }).quote).toBeUndefined();
});

test.each(Object.keys(ERRORS) as ErrorName[])("the client's error %s is shown as an error with a remedy", (reason) => {
  const { tone, remedy } = failureNotice({ reason, problem: null, detail: null });
  expect([tone, remedy.endsWith(".")]).toEqual(["error", true]);
});

test("an expired, a withdrawn and a not yet valid link have different messages", () => {
  const titles = ["jwt expired", "jwt revoked", "jwt not active", "invalid signature"].map(
    (fault) => tokenNotice(fault).title,
  );
  expect(new Set(titles).size).toBe(4);
});

test("the meter is empty at silence, half at -30 dB, and full and loud when it clips", () => {
  const at = (peak: number) => levelOf(Float32Array.of(0, -peak, peak / 2));
  expect(at(0)).toEqual({ level: 0, isLoud: false });
  expect(at(10 ** (-30 / 20)).level).toBeCloseTo(0.5);
  expect(at(1)).toEqual({ level: 1, isLoud: true });
});

test("a browser's H.264 can send each quality within the service's limit", () => {
  for (const { width, height, videoBitrate } of QUALITIES) {
    expect([width % 2, height % 2]).toEqual([0, 0]);
    expect(videoBitrate).toBeLessThan(6_000_000);
  }
});

test("the title of a link's stream takes the place of its name, isolated from the sentence", () => {
  const live = { ...state, stage: "live" } as const;
  expect(wordsOf(live).status).toBe("You are live on Ab1Cd-9XyZ0.");
  expect(wordsOf({ ...live, title: "مساء" }).status).toBe("You are live on \u2068مساء\u2069.");
});
