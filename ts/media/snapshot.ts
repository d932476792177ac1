// The state of a running publish at one moment, as the media core counts it. Shapes mirror crates/bridge; `null` means
// none.
import type { IrregularityCount as CoreIrregularity, PublishCounters } from "#native";
import type { Irregularity, UpstreamSource, UpstreamState } from "./codes.ts";

/** The state of one upstream of a running publish. */
export interface UpstreamStatus {
  /** The id given when it was added. */
  readonly id: string;
  /** `rtmp[s]://host:port/app`: without credentials, stream key and arguments. */
  readonly url: string;
  readonly source: UpstreamSource;
  /** `waiting`: for the next attempt after a loss; `refused`: the same after a refusal, with longer pauses. */
  readonly state: UpstreamState;
  /** When it entered that state, epoch ms. */
  readonly since: number;
  /** Why it last stopped, in words; null when it never did. */
  readonly lastError: string | null;
  /** Audio and video payload bytes sent to it, over all its connections. */
  readonly bytesOut: number;
  readonly droppedFrames: number;
  /** How often it was reconnected. */
  readonly reconnects: number;
}

/** The tracks of a publish; null for what is absent or not known yet. */
export interface PublishTracks {
  readonly video: { readonly codec: string; readonly width: number | null; readonly height: number | null } | null;
  readonly audio: {
    readonly codec: string;
    readonly sampleRate: number | null;
    readonly channels: number | null;
  } | null;
}

/** Counters of one running publish session. */
export interface PublishSnapshot {
  readonly clientId: number;
  readonly onAir: boolean; // false: it is on standby
  /** Newest packet timestamp in ms, extended to 64 bits, non-negative. */
  readonly timestampMs: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** All bytes received on the broadcaster's connection, metadata and protocol included. */
  readonly receivedBytes: number;
  /** Milliseconds since anything was received from the broadcaster. */
  readonly silentMs: number;
  readonly subscribers: number;
  readonly droppedFrames: number;
  /** Video frames from the broadcaster: two readings give the frame rate. */
  readonly videoFrames: number;
  /** Time between the two newest keyframes on the broadcaster's clock, ms; null before the second one. */
  readonly gopMs: number | null;
  /** How long there has been no keyframe while readers wait for one, ms; null while none waits. */
  readonly keyframeAwaitedMs: number | null;
  /** Round-trip time to the broadcaster, ms: for WHIP measured by answered requests, for RTMP that of the TCP
   *  connection (behind a TLS terminator, that to the terminator). At most two seconds old; null while unknown. */
  readonly rttMs: number | null;
  /** Packets of a WHIP publish lost for good in the last five seconds, percent; null while unknown and for RTMP. */
  readonly lossPercent: number | null;
  /** Offset between video and audio of a WHIP publish on the sender's clocks, ms, positive: the video is early; null
   *  while unknown and for RTMP. */
  readonly skewMs: number | null;
  readonly tracks: PublishTracks;
  readonly upstreams: readonly UpstreamStatus[];
  /** Why its audio is not transcoded to AAC although a reader needs that; null when there is no problem. */
  readonly transcoderError: string | null;
  /** What was irregular about the publisher; only kinds that have occurred. */
  readonly irregularities: readonly { readonly code: Irregularity; readonly count: number }[];
}

/** A count of the core. */
export function readIrregularity({ code, count }: CoreIrregularity): PublishSnapshot["irregularities"][number] {
  // The core's table has exactly these.
  return { code: code as Irregularity, count };
}

/** Counters of the core. */
export function readSnapshot({
  video,
  audio,
  upstreams,
  transcoderError,
  irregularities,
  ...counters
}: PublishCounters): PublishSnapshot {
  return {
    ...counters,
    gopMs: counters.gopMs ?? null,
    keyframeAwaitedMs: counters.keyframeAwaitedMs ?? null,
    rttMs: counters.rttMs ?? null,
    lossPercent: counters.lossPercent ?? null,
    skewMs: counters.skewMs ?? null,
    tracks: {
      video: video ? { codec: video.codec, width: video.width ?? null, height: video.height ?? null } : null,
      audio: audio
        ? { codec: audio.codec, sampleRate: audio.sampleRate ?? null, channels: audio.channels ?? null }
        : null,
    },
    upstreams: upstreams.map(({ source, state, lastError, ...upstream }) => ({
      ...upstream,
      // The core's tables have exactly these.
      source: source as UpstreamSource,
      state: state as UpstreamStatus["state"],
      lastError: lastError ?? null,
    })),
    transcoderError: transcoderError ?? null,
    irregularities: irregularities.map(readIrregularity),
  };
}
