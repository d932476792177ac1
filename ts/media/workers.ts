// How the media workers do, as they measure it themselves, and how full the RTMP ports are.

/** One worker over the last second; all zero for one that slept. */
export interface WorkerStatus {
  /** Share of a core that its thread took, 0 to 1. */
  readonly load: number;
  /** Share of the time in which it was at work, or would have been had it got a processor, 0 to 1. */
  readonly busy: number;
  /** How long what comes to it waits for its turn on average, beyond the 2 ms of a turn, ms. */
  readonly lateMs: number;
}

/** What may be asked of the media core about its load. */
export interface WorkerMedia {
  /** One for each worker. */
  workerStatus(): readonly WorkerStatus[];
  /** Those to the RTMP ports now. */
  connections(): ConnectionCount;
}

export interface ConnectionCount {
  readonly held: number;
  /** From here on they are closed at once; absent where neither the configuration nor the system sets a limit. */
  readonly limit?: number;
}

/** The share of a core that the busiest takes, 0 to 1. */
export function busiestOf(workers: readonly WorkerStatus[]): number {
  return Math.max(0, ...workers.map(({ load }) => load));
}
