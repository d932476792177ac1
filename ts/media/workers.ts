// The load of the media workers, as they measure it themselves, and the number of connections to the RTMP ports.
import type { ConnectionCount, MediaCore, WorkerStatus } from "#native";

export type { ConnectionCount, WorkerStatus };

/** The load functions of the media core. */
export type WorkerMedia = Pick<MediaCore, "workerStatus" | "connections">;

/** The load of the busiest worker, as a share of one core, 0 to 1. */
export function busiestOf(workers: readonly WorkerStatus[]): number {
  return Math.max(0, ...workers.map(({ load }) => load));
}
