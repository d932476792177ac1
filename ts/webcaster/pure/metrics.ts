// Metrics of a broadcast, each second, from two readings of the browser's statistics (W3C webrtc-stats). Pure.
import type { WebcasterState } from "./state.ts";

/** Values of the last second, unless stated otherwise. `null` for what the browser does not report. */
export interface Metrics {
  /** Epoch, milliseconds. */
  readonly timestampMs: number;
  readonly state: WebcasterState;
  /** Since the broadcast went live, seconds. */
  readonly liveSec: number;
  /** How often the broadcast was restarted. */
  readonly reconnects: number;
  /** Whether the page is in a hidden tab, which the browser may throttle. */
  readonly isHidden: boolean;
  readonly video: VideoMetrics | null;
  readonly audio: AudioMetrics | null;
  readonly connection: ConnectionMetrics | null;
}

export interface VideoMetrics {
  /** `H264`. */
  readonly codec: string | null;
  /** Bitrate sent, bits per second, without retransmissions. */
  readonly bitrateBps: number;
  /** The encoder's target, bits per second. */
  readonly targetBitrateBps: number | null;
  readonly framesPerSecond: number;
  /** Size of the frames sent, pixels. */
  readonly width: number | null;
  readonly height: number | null;
  /** Since the start of this connection. */
  readonly keyframes: number;
  /** Average time to encode a frame, milliseconds. */
  readonly encodeMs: number | null;
  /** Average time that packets wait before they are sent, milliseconds. */
  readonly sendDelayMs: number | null;
  /** What limits the quality: `none`, `cpu`, `bandwidth` or `other`. */
  readonly limitedBy: string | null;
}

export interface AudioMetrics {
  /** `opus`. */
  readonly codec: string | null;
  /** Bitrate sent, bits per second. */
  readonly bitrateBps: number;
  /** Level of the microphone, 0 to 1. */
  readonly level: number | null;
}

export interface ConnectionMetrics {
  /** Round-trip time to the service, milliseconds. */
  readonly roundTripMs: number | null;
  /** Packets lost, 0 to 100. */
  readonly packetLossPercent: number | null;
  /** Jitter of video packets at the service, milliseconds. */
  readonly jitterMs: number | null;
  /** Estimated bandwidth of the network, bits per second. */
  readonly availableBitrateBps: number | null;
  /** `udp`, `tcp`, or `relay` for a TURN server. */
  readonly transport: string | null;
}

/** An entry of a statistics report. */
export type Stats = Readonly<Record<string, unknown>>;

/** One reading of the statistics, by subject. */
export interface Reading {
  /** Time of the reading, epoch milliseconds. */
  readonly timestampMs: number;
  readonly video: Stats | null;
  readonly audio: Stats | null;
  readonly microphone: Stats | null;
  readonly remoteVideo: Stats | null;
  readonly pair: Stats | null;
  readonly localCandidate: Stats | null;
  readonly videoCodec: Stats | null;
  readonly audioCodec: Stats | null;
}

/** Sorts a report's entries by subject. */
export function readingOf(report: Iterable<Stats>): Reading {
  const entries = [...report];
  const find = (type: string, wanted: (entry: Stats) => boolean = () => true) =>
    entries.find((entry) => entry.type === type && wanted(entry)) ?? null;
  const byId = (id: unknown) => entries.find((entry) => entry.id === id) ?? null;
  const ofKind = (kind: string) => (entry: Stats) => entry.kind === kind;
  const video = find("outbound-rtp", ofKind("video"));
  const audio = find("outbound-rtp", ofKind("audio"));
  const transport = find("transport");
  // Firefox has no transport entry and marks the selected pair.
  const pair =
    byId(transport?.selectedCandidatePairId) ??
    find("candidate-pair", ({ selected }) => selected === true) ??
    find("candidate-pair", ({ nominated, state }) => nominated === true && state === "succeeded");
  return {
    timestampMs: Math.max(0, ...entries.map((entry) => numberOf(entry.timestamp) ?? 0)),
    video,
    audio,
    microphone: find("media-source", ofKind("audio")),
    remoteVideo: find("remote-inbound-rtp", ofKind("video")) ?? find("remote-inbound-rtp"),
    pair,
    localCandidate: byId(pair?.localCandidateId),
    videoCodec: byId(video?.codecId),
    audioCodec: byId(audio?.codecId),
  };
}

/** Bytes and responses to connectivity checks received from the service so far: it grows while the service responds. */
export function receivedCount({ pair }: Reading): number {
  return (numberOf(pair?.bytesReceived) ?? 0) + (numberOf(pair?.responsesReceived) ?? 0);
}

/** The metrics between two readings of one connection; `before` is null for its first. */
export function metricsOf(
  before: Reading | null,
  now: Reading,
  about: Pick<Metrics, "state" | "liveSec" | "reconnects" | "isHidden">,
): Metrics {
  const seconds = before === null ? 0 : (now.timestampMs - before.timestampMs) / 1_000;
  const grown = (part: "video" | "audio", name: string) => {
    const difference = (numberOf(now[part]?.[name]) ?? 0) - (numberOf(before?.[part]?.[name]) ?? 0);
    return Math.max(0, difference);
  };
  const perSecond = (part: "video" | "audio", name: string) => (seconds > 0 ? grown(part, name) / seconds : 0);
  /** Average duration in milliseconds of a total given in seconds. */
  const msPer = (name: string, count: string) =>
    grown("video", count) > 0 ? round((grown("video", name) / grown("video", count)) * 1_000, 1) : null;
  const lost = numberOf(now.remoteVideo?.fractionLost);
  return {
    timestampMs: now.timestampMs,
    ...about,
    video: now.video && {
      codec: codecOf(now.videoCodec),
      bitrateBps: Math.round(perSecond("video", "bytesSent") * 8 - perSecond("video", "retransmittedBytesSent") * 8),
      targetBitrateBps: numberOf(now.video.targetBitrate),
      framesPerSecond: round(perSecond("video", "framesEncoded"), 1),
      width: numberOf(now.video.frameWidth),
      height: numberOf(now.video.frameHeight),
      keyframes: numberOf(now.video.keyFramesEncoded) ?? 0,
      encodeMs: msPer("totalEncodeTime", "framesEncoded"),
      sendDelayMs: msPer("totalPacketSendDelay", "packetsSent"),
      limitedBy: textOf(now.video.qualityLimitationReason),
    },
    audio: now.audio && {
      codec: codecOf(now.audioCodec),
      bitrateBps: Math.round(perSecond("audio", "bytesSent") * 8),
      level: numberOf(now.microphone?.audioLevel),
    },
    connection: now.pair && {
      roundTripMs: milliseconds(now.pair.currentRoundTripTime) ?? milliseconds(now.remoteVideo?.roundTripTime),
      packetLossPercent: lost === null ? null : round(lost * 100, 1),
      jitterMs: milliseconds(now.remoteVideo?.jitter),
      availableBitrateBps: numberOf(now.pair.availableOutgoingBitrate),
      transport: now.localCandidate?.candidateType === "relay" ? "relay" : textOf(now.localCandidate?.protocol),
    },
  };
}

function codecOf(codec: Stats | null): string | null {
  return textOf(codec?.mimeType)?.replace(/^\w+\//, "") ?? null;
}

function milliseconds(seconds: unknown): number | null {
  const known = numberOf(seconds);
  return known === null ? null : round(known * 1_000, 1);
}

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
