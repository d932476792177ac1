// What is wrong with a running publish: the only place that decides it. The list of streams, the page of a stream, the
// timeline, `headgate explain`, the metrics and GET /session all show these findings. Pure: readings and time are
// arguments. Each threshold is here once.
import type { Protocol } from "../../media/protocols.ts";
import type { PublishSnapshot, WhipDiagnostics } from "../../media.ts";
import { type Described, describe, type FindingCode } from "./health-words.ts";
import { bitrateFell, isUnsteady, POINTS_SEEN } from "./number-trends.ts";
import type { Numbers } from "./numbers.ts";

/** The mildest first. `note`: worth knowing, nothing to repair; `attention`: viewers may get broken media soon, or some
 *  do; `bad`: they get broken media or none. */
export const SEVERITIES = ["note", "attention", "bad"] as const;
export type Severity = (typeof SEVERITIES)[number];
/** Of a whole publish: its worst finding, apart from notes. */
export const CONDITIONS = ["good", "attention", "bad"] as const;
export type Condition = (typeof CONDITIONS)[number];

/** Nothing has come from the broadcaster for this long, ms: longer than the pauses of any working network. */
const SILENT_MS = 5_000;
/** No media, or no video, for this long, ms: less than the 5 s between two readings, so that one of them shows it. */
const MEDIA_STOPPED_MS = 4_000;
/** How long a start may take before something is missing, ms: connecting and the first keyframe are over by then. */
const SETTLED_MS = 10_000;
/** No keyframe for this long, ms: WHIP senders are asked for one every two seconds, and RTMP encoders count only while a
 *  reader waits. */
const KEYFRAMES_MISSING_MS = 5_000;
/** Keyframes further apart than this make players start late, and platforms with segments of two to four seconds
 *  complain; at the second value most viewers have left before they see anything, ms. */
const KEYFRAMES_RARE_MS = 4_000;
const KEYFRAMES_BAD_MS = 10_000;
/** Packets lost for good that viewers notice occasionally, and continuously, percent. A loss is over below the third
 *  value: around the first it would come and go. */
const LOSS_PERCENT = 1;
const LOSS_BAD_PERCENT = 5;
const LOSS_OVER_PERCENT = 0.5;
/** People notice audio that is this far behind its video (ITU-R BT.1359), ms. */
const SKEW_MS = 125;
/** A packet that is requested again after this round trip comes too late to be shown, ms. */
const ROUND_TRIP_MS = 300;
/** How long dropped frames are reported after the last one, ms: slow readers drop them in bursts. */
const DROPPED_MS = 60_000;
/** Share of its bitrate limit at which a sender is held back by it: encoders stay somewhat below. */
const LIMIT_SHARE = 0.9;

export interface Finding extends Described {
  readonly code: FindingCode;
  /** Which one, where a publish may have several of a code: the id of an upstream, the code of an irregularity. */
  readonly about: string | null;
  readonly severity: Severity;
  /** When it began, epoch ms. */
  readonly since: number;
  /** The measured value: percent, ms, kbit/s, or a count; null for a code without one. */
  readonly value: number | null;
}

/** The publish that is watched; names and limits may change while it runs. */
export interface WatchedSubject {
  readonly protocol: Protocol;
  /** Epoch ms. */
  readonly acceptedAt: number;
  /** The label of an upstream, by its id; null for none. */
  labelOf(upstream: string): string | null;
  /** The bitrate its sender was asked to stay below, kbit/s; 0 for none. */
  limitKbps(): number;
}

/** One reading of a publish. */
export interface Reading {
  /** Epoch ms. */
  readonly at: number;
  readonly snapshot: PublishSnapshot;
  readonly numbers: Numbers;
}

interface Found {
  readonly code: FindingCode;
  readonly severity: Severity;
  readonly about?: string;
  /** Absent: since the first reading that shows it. */
  readonly since?: number;
  readonly value?: number;
  /** What the words name: an upstream, and what it said; a cause. */
  readonly named?: { readonly name?: string; readonly said?: string | null };
}

/** A counter, and when it was last seen to change, epoch ms. */
interface Counter {
  readonly count: number;
  readonly at: number;
}

export class PublishHealth {
  readonly #of: WatchedSubject;
  #findings: readonly Finding[] = [];
  /** Epoch ms. */
  #acceptedAt: number;
  #bytes: Counter;
  #frames: Counter;
  /** Frames dropped for readers; null before the first reading. */
  #dropped: Counter | null = null;
  /** Age of the newest keyframe of a WHIP publish at the last point, ms; null for RTMP, or while unknown. */
  #keyframeAgeMs: number | null = null;
  /** The numbers of the last points, oldest first, and what they say together. */
  readonly #points: Numbers[] = [];
  #trends = { isUnsteady: false, hasFallen: false, newestKbps: 0 };

  constructor(of: WatchedSubject) {
    this.#of = of;
    this.#acceptedAt = of.acceptedAt;
    this.#bytes = { count: 0, at: of.acceptedAt };
    this.#frames = { count: 0, at: of.acceptedAt };
  }

  /** The worst first. */
  get findings(): readonly Finding[] {
    return this.#findings;
  }

  /** Takes a point of the history, of every five seconds. `diagnostics`: null for RTMP, or when there are none yet. */
  point(reading: Reading, diagnostics: WhipDiagnostics | null): readonly Finding[] {
    this.#keyframeAgeMs = diagnostics?.video?.keyframeAgeMs ?? null;
    this.#points.push(reading.numbers);
    if (this.#points.length > POINTS_SEEN) this.#points.shift();
    const kbps = this.#points.map((point) => point.bitrateKbps);
    this.#trends = {
      isUnsteady: isUnsteady(this.#points.map((point) => point.fps)),
      hasFallen: bitrateFell(kbps),
      newestKbps: kbps.at(-1) ?? 0,
    };
    return this.assess(reading);
  }

  /** Takes a reading between two points. */
  assess(reading: Reading): readonly Finding[] {
    const { at, snapshot } = reading;
    const { bytesIn, videoFrames, droppedFrames } = snapshot;
    // What is later than now was so before the clock was set back.
    const counted = (known: Counter, count: number): Counter => ({
      count,
      at: count === known.count ? Math.min(known.at, at) : at,
    });
    this.#acceptedAt = Math.min(this.#acceptedAt, at);
    this.#bytes = counted(this.#bytes, bytesIn);
    this.#frames = counted(this.#frames, videoFrames);
    this.#dropped = counted(this.#dropped ?? { count: droppedFrames, at: Number.NEGATIVE_INFINITY }, droppedFrames);
    const before = new Map(this.#findings.map((finding) => [keyOf(finding), finding.since]));
    const found = [...this.#media(reading), ...this.#network(reading), ...this.#readers(reading)];
    this.#findings = found
      .map(({ code, severity, about = null, since, value = null, named = {} }): Finding => {
        const began = before.get(keyOf({ code, about })) ?? Math.round(since ?? at);
        const what = { about, value, isWhip: this.#of.protocol === "whip", ...named };
        return { code, about, severity, since: began, value, ...describe(code, what) };
      })
      .sort((one, other) => SEVERITIES.indexOf(other.severity) - SEVERITIES.indexOf(one.severity));
    return this.#findings;
  }

  /** What arrives: nothing, no video, no keyframes. The first of these explains the others. */
  *#media({ at, snapshot, numbers }: Reading): Generator<Found> {
    const { silentMs, videoFrames, tracks, keyframeAwaitedMs, irregularities } = snapshot;
    for (const { code, count } of irregularities)
      yield { code: "irregular", severity: "note", about: code, value: count };
    const since = this.#acceptedAt;
    const isSettled = at - since >= SETTLED_MS;
    const hasVideo = videoFrames > 0 || tracks.video !== null;
    const isStopped = at - this.#bytes.at >= MEDIA_STOPPED_MS;
    if (silentMs >= SILENT_MS) return yield { code: "silent", severity: "bad", since: at - silentMs };
    if (isSettled && (isStopped || (!hasVideo && tracks.audio === null)))
      return yield { code: "no_media", severity: "bad", since: this.#bytes.at };
    if (isSettled && !hasVideo) yield { code: "no_video", severity: "note", since };
    if (isSettled && tracks.video !== null && tracks.audio === null)
      yield { code: "no_audio", severity: "attention", since };
    if (videoFrames > 0 && at - this.#frames.at >= MEDIA_STOPPED_MS)
      return yield { code: "video_stopped", severity: "bad", since: this.#frames.at };
    const ageMs = this.#keyframeAgeMs ?? keyframeAwaitedMs ?? 0;
    const { gopMs } = numbers;
    if (hasVideo && ageMs >= KEYFRAMES_MISSING_MS)
      yield { code: "keyframes_missing", severity: "bad", since: at - ageMs };
    else if (hasVideo && gopMs !== null && gopMs > KEYFRAMES_RARE_MS)
      yield { code: "keyframes_rare", severity: gopMs > KEYFRAMES_BAD_MS ? "bad" : "attention", value: gopMs };
  }

  /** How it arrives. */
  *#network({ numbers: { lossPercent, rttMs, skewMs } }: Reading): Generator<Found> {
    const wasLossy = this.#findings.some(({ code }) => code === "packet_loss");
    if (lossPercent !== null && lossPercent >= (wasLossy ? LOSS_OVER_PERCENT : LOSS_PERCENT)) {
      const severity = lossPercent >= LOSS_BAD_PERCENT ? "bad" : "attention";
      yield { code: "packet_loss", severity, value: lossPercent };
    }
    if (skewMs !== null && Math.abs(skewMs) >= SKEW_MS)
      yield { code: "audio_video_apart", severity: "attention", value: skewMs };
    if (rttMs !== null && rttMs >= ROUND_TRIP_MS)
      yield { code: "long_round_trip", severity: "attention", value: rttMs };
    const { newestKbps, ...trends } = this.#trends;
    if (trends.isUnsteady) yield { code: "frame_rate_unsteady", severity: "attention" };
    if (trends.hasFallen) yield { code: "bitrate_fell", severity: "attention", value: newestKbps };
    const limit = this.#of.limitKbps();
    if (limit > 0 && newestKbps >= limit * LIMIT_SHARE)
      yield { code: "bitrate_limit_reached", severity: "note", value: limit };
  }

  /** What upstreams and players get of it. */
  *#readers({ at, snapshot }: Reading): Generator<Found> {
    const { upstreams, transcoderError } = snapshot;
    const { connected } = upstreamCounts(snapshot);
    for (const { id, url, since, lastError } of upstreams.filter(isFailing)) {
      const named = { name: this.#of.labelOf(id) ?? url, said: lastError };
      yield { code: "upstream_down", severity: connected === 0 ? "bad" : "attention", about: id, since, named };
    }
    if (transcoderError !== null)
      yield { code: "audio_not_transcoded", severity: "bad", named: { said: transcoderError } };
    if (this.#dropped !== null && at - this.#dropped.at < DROPPED_MS)
      yield { code: "frames_dropped", severity: "attention", value: this.#dropped.count };
  }
}

export function conditionOf(findings: readonly Pick<Finding, "severity">[]): Condition {
  if (findings.some(({ severity }) => severity === "bad")) return "bad";
  return findings.some(({ severity }) => severity === "attention") ? "attention" : "good";
}

/** How many of a publish's upstreams receive it, and how many do not. */
export interface UpstreamCounts {
  readonly connected: number;
  readonly failing: number;
}

export function upstreamCounts({ upstreams }: Pick<PublishSnapshot, "upstreams">): UpstreamCounts {
  const connected = upstreams.filter(({ state }) => state === "sending").length;
  return { connected, failing: upstreams.filter(isFailing).length };
}

function isFailing({ state }: PublishSnapshot["upstreams"][number]): boolean {
  return state === "waiting" || state === "refused";
}

const keyOf = ({ code, about }: Pick<Finding, "code" | "about">): string => `${code} ${about ?? ""}`;
