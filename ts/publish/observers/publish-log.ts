// One log line when a publish starts, and one when it has ended.
import type { Logger } from "pino";
import { inLog } from "../ending/ending.ts";
import type { PublishEvents } from "../publish-events.ts";
import { identityOf } from "../record.ts";

export function logPublishes(
  events: Pick<PublishEvents, "listen">,
  deps: {
    readonly log: Logger;
    /** Epoch ms. */
    readonly clock: { now(): number };
    /** Further fields of the line about a publish that has ended. */
    readonly figuresOf: (clientId: number) => object;
  },
): void {
  const { log, clock, figuresOf } = deps;
  events.listen((event) => {
    if (event.kind === "started") {
      const { intent, protocol } = event.publish;
      log.info({ ...identityOf(intent), protocol, address: intent.address }, "publish started");
    }
    if (event.kind === "ended") {
      const { publish, reason, ending, counters } = event;
      const { clientId, bytesIn, bytesOut, videoFrames: frames, droppedFrames: framesDropped, packetsLost } = counters;
      const who = publish === null ? { clientId } : { ...identityOf(publish.intent), protocol: publish.protocol };
      const seconds = publish === null ? undefined : Math.floor((clock.now() - publish.acceptedAt) / 1_000);
      const figures = { bytesIn, bytesOut, frames, framesDropped, packetsLost, ...figuresOf(clientId) };
      log.info({ ...who, reason, ...inLog(ending), seconds, ...figures }, "publish ended");
    }
  });
}
