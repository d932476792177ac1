// Checks what an upstream got of a WHIP publish: it decodes, in order, from a keyframe on, with audio and video
// starting together, and the customer got one publish and one end.
import { expect } from "vitest";
import { until } from "./child.ts";
import type { Customer } from "./customer.ts";
import { decodeComplaints, packetsOf } from "./ffmpeg.ts";
import { isMonotonic, ofTrack, startsAtKeyframe } from "./judge.ts";
import type { NginxRtmp } from "./nginx-rtmp.ts";

/** Limit of the offset between the starts of audio and video, ms: a video frame lasts 40 and an AAC frame 21. */
const START_LIMIT_MS = 100;
/** Minimum share of the published duration: a client counts its seconds from before its media flows, or ends its
 *  tracks one by one. */
const LEAST_PART = 0.8;
const DONE_LIMIT_MS = 10_000;

export interface Figures {
  readonly pictures: number;
  readonly seconds: number;
  /** From the first video frame to the first audio frame, ms. */
  readonly startGapMs: number;
  /** From the last video frame to the last audio frame, ms. */
  readonly endGapMs: number;
  readonly longestGopMs: number;
}

/** Fails unless the ended publish of this name arrived upstream as it should; returns the measurements. */
export async function expectGoodPublish(
  name: string,
  {
    customer,
    upstream,
    seconds,
    startLimitMs = START_LIMIT_MS,
  }: { customer: Customer; upstream: NginxRtmp; seconds: number; startLimitMs?: number },
): Promise<Figures> {
  const calls = (call: string) => customer.calls(call).filter(({ body }) => body.includes(`name=${name}&`));
  await until("publish_done", () => calls("publish_done").length > 0, DONE_LIMIT_MS);
  const recording = await until("the recording", () => upstream.recording(name));
  const packets = await packetsOf(recording);
  const [video, audio] = [ofTrack(packets, "video"), ofTrack(packets, "audio")];
  const [firstPicture, firstSound] = [video[0]?.dts ?? Number.NaN, audio[0]?.dts ?? Number.NaN];
  const keys = video.filter(({ isKey }) => isKey).map(({ dts }) => dts);
  const figures = {
    pictures: video.length,
    seconds: ((video.at(-1)?.dts ?? firstPicture) - firstPicture) / 1_000,
    startGapMs: firstSound - firstPicture,
    endGapMs: (audio.at(-1)?.dts ?? Number.NaN) - (video.at(-1)?.dts ?? Number.NaN),
    longestGopMs: Math.max(0, ...keys.slice(1).map((dts, at) => dts - (keys[at] ?? 0))),
  };
  expect(await decodeComplaints(recording), name).toBe("");
  expect(startsAtKeyframe(packets), "begins with a keyframe").toBe(true);
  expect(isMonotonic(packets), "decode times never go back").toBe(true);
  expect(Math.abs(figures.startGapMs), JSON.stringify(figures)).toBeLessThanOrEqual(startLimitMs);
  expect(figures.seconds, JSON.stringify(figures)).toBeGreaterThan(seconds * LEAST_PART);
  expect((audio.at(-1)?.dts ?? 0) - firstSound).toBeGreaterThan(seconds * LEAST_PART * 1_000);
  expect(calls("publish")).toHaveLength(1);
  expect(calls("publish_done")).toHaveLength(1);
  return figures;
}
