// A capture played again by the media core's own code, without a service (docs/capture.md).

/** What crosses the bridge: `undefined` is none. */
type Crossed<T> = { readonly [K in keyof T as null extends T[K] ? never : K]: T[K] } & {
  readonly [K in keyof T as null extends T[K] ? K : never]?: Exclude<T[K], null>;
};

/** One track, as it was handed on. */
export interface ReplayTrack {
  readonly codec: string;
  readonly frames: number;
  readonly bytes: number;
  readonly keyframes: number;
  readonly firstMs: number;
  readonly lastMs: number;
  /** null for audio. */
  readonly firstKeyframeMs: number | null;
  /** Steps of more than a second. */
  readonly holes: number;
  readonly stepsBack: number;
}

/** What came of a capture. */
export interface ReplayOutcome {
  readonly header: string;
  readonly whip: boolean;
  readonly media: boolean;
  readonly fromMiddle: boolean;
  readonly tracks: readonly ReplayTrack[];
  /** Of the bodies and times of all RTMP messages. */
  readonly hash: string;
  readonly frames: number;
  readonly bytesIn: number;
  /** null for RTMP, as the next three. */
  readonly lost: number | null;
  readonly nacks: number | null;
  readonly recovered: number | null;
  readonly plis: number | null;
  /** EndReason's code; null when the publish went on. */
  readonly end: string | null;
  /** Why the capture ended; null when the file does not say. */
  readonly finished: string | null;
  readonly fault: string | null;
  readonly compared: number;
  readonly skipped: number;
  /** What is not as it was live; null: the outcome is the same. */
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
