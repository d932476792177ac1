// The load of the media workers, as they measure it themselves, and the number of connections to the RTMP ports.

/** One worker over the last second; all zero for an idle one. */
export interface WorkerStatus {
  /** CPU time of its thread as a share of one core, 0 to 1. */
  readonly load: number;
  /** Share of the time in which it was working or waiting for a CPU, 0 to 1. */
  readonly busy: number;
  /** Average delay of incoming work beyond the 2 ms of a turn, ms. */
  readonly lateMs: number;
}

/** The load functions of the media core. */
export interface WorkerMedia {
  /** One for each worker. */
  workerStatus(): readonly WorkerStatus[];
  /** Open connections to the RTMP ports. */
  connections(): ConnectionCount;
}

export interface ConnectionCount {
  readonly held: number;
  /** Beyond this, new connections are closed immediately; absent where neither the configuration nor the
   *  system sets a limit. */
  readonly limit?: number;
}

/** The load of the busiest worker, as a share of one core, 0 to 1. */
export function busiestOf(workers: readonly WorkerStatus[]): number {
  return Math.max(0, ...workers.map(({ load }) => load));
}
