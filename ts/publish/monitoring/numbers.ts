// Numbers derived from two readings of a publish's counters: rates, together with what the media core measures itself.
import type { PublishSnapshot } from "../../media.ts";

/** Rates over a shorter time mean nothing, ms. */
export const SHORTEST_MS = 500;

/** Each is null where it is not known. */
export interface Numbers {
  /** Audio and video payload from the broadcaster, kbit/s. */
  readonly bitrateKbps: number | null;
  /** Video frames per second. */
  readonly fps: number | null;
  /** Time between the two newest keyframes, ms. */
  readonly gopMs: number | null;
  readonly lossPercent: number | null;
  readonly rttMs: number | null;
  /** Offset between video and audio, ms; positive: the video is early. */
  readonly skewMs: number | null;
}

/** One reading of the counters from which rates are computed. */
export interface Reading {
  /** Epoch ms. */
  readonly at: number;
  readonly bytesIn: number;
  readonly videoFrames: number;
}

export const UNKNOWN: Numbers = {
  bitrateKbps: null,
  fps: null,
  gopMs: null,
  lossPercent: null,
  rttMs: null,
  skewMs: null,
};

/** The numbers of `snapshot`, taken at `at`; rates since `earlier`, which is null for a first reading. */
export function numbersOf(snapshot: PublishSnapshot, at: number, earlier: Reading | null): Numbers {
  const { gopMs, lossPercent, rttMs, skewMs, tracks } = snapshot;
  const elapsedMs = earlier === null ? 0 : at - earlier.at;
  const perMs = (now: number, before: number) => Math.max(0, now - before) / elapsedMs;
  // None after too short a time, nor when the clock was set back.
  const hasRates = earlier !== null && elapsedMs >= SHORTEST_MS;
  return {
    bitrateKbps: hasRates ? Math.round(perMs(snapshot.bytesIn, earlier.bytesIn) * 8) : null,
    fps: hasRates && tracks.video !== null ? tenths(perMs(snapshot.videoFrames, earlier.videoFrames) * 1_000) : null,
    gopMs: gopMs === null ? null : Math.round(gopMs),
    lossPercent: lossPercent === null ? null : tenths(lossPercent),
    rttMs: rttMs === null ? null : Math.round(rttMs),
    skewMs: skewMs === null ? null : Math.round(skewMs),
  };
}

export function readingOf({ bytesIn, videoFrames }: PublishSnapshot, at: number): Reading {
  return { at, bytesIn, videoFrames };
}

const tenths = (value: number): number => Math.round(value * 10) / 10;
