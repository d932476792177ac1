// Replays a capture through the media core's own code, without a service (docs/capture.md).

/** The shape that crosses the bridge, where `undefined` means none. */
type Crossed<T> = { readonly [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null>;
};

/** One track as it was delivered. */
export interface ReplayTrack {
  readonly codec: string;
  readonly frames: number;
  readonly bytes: number;
  readonly keyframes: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** null for audio. */
  readonly firstKeyframeMs: number | null;
  /** Timestamp steps of more than a second. */
  readonly holes: number;
  readonly stepsBack: number;
}

/** The result of a replay. */
export interface ReplayOutcome {
  readonly header: string;
  readonly whip: boolean;
  readonly media: boolean;
  readonly fromMiddle: boolean;
  readonly tracks: readonly ReplayTrack[];
  /** Over the bodies and timestamps of all RTMP messages. */
  readonly hash: string;
  readonly frames: number;
  readonly bytesIn: number;
  /** null for RTMP, as the next three. */
  readonly lost: number | null;
  readonly nacks: number | null;
  readonly recovered: number | null;
  readonly plis: number | null;
  /** Code of the EndReason; null when the publish did not end. */
  readonly end: string | null;
  /** Why the capture ended; null when the file does not say. */
  readonly finished: string | null;
  readonly fault: string | null;
  readonly compared: number;
  readonly skipped: number;
  /** How the result differs from the live publish; null when it does not. */
  readonly difference: string | null;
}

export function readReplay(
  outcome: Crossed<Omit<ReplayOutcome, "tracks">> & { readonly tracks: readonly Crossed<ReplayTrack>[] },
): ReplayOutcome {
  const { tracks, lost, nacks, recovered, plis, end, finished, fault, difference, ...rest } = outcome;
  return {
    ...rest,
    tracks: tracks.map(({ firstKeyframeMs, ...track }) => ({ ...track, firstKeyframeMs: firstKeyframeMs ?? null })),
    lost: lost ?? null,
    nacks: nacks ?? null,
    recovered: recovered ?? null,
    plis: plis ?? null,
    end: end ?? null,
    finished: finished ?? null,
    fault: fault ?? null,
    difference: difference ?? null,
  };
}
