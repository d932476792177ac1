// Explains that the audio of a publish cannot be transcoded to AAC, in words for people and once in the log.
import type { Logger } from "pino";
import type { PublishSnapshot } from "../media.ts";

/** Text for a session. `reason` is the core's `transcoderError`. */
export function withoutAac(reason: string): string {
  return `The audio cannot be transcoded to AAC (${reason}): players and upstreams that do not accept Opus get video without audio`;
}

/** Text for each of its upstreams. Only the core knows which of them accept Opus. */
export function upstreamWithoutAac(reason: string): string {
  return `It gets no audio of this stream unless it accepts Opus: transcoding to AAC failed (${reason})`;
}

/** Checks the snapshots of all running publishes; logs one warning for each publish, when its error appears. */
export function createTranscoderWarnings(
  log: Pick<Logger, "warn">,
): (snapshots: readonly Pick<PublishSnapshot, "clientId" | "transcoderError">[]) => void {
  /** Running publishes already warned about. */
  let warned = new Set<number>();
  return (snapshots) => {
    const running = new Set<number>();
    for (const { clientId, transcoderError } of snapshots) {
      if (warned.has(clientId)) running.add(clientId);
      else if (transcoderError !== null) {
        running.add(clientId);
        log.warn({ clientId, reason: transcoderError }, "audio cannot be transcoded to AAC");
      }
    }
    warned = running;
  };
}
