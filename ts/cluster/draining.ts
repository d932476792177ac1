// A node that takes no new publishes because its operator said so (`headgate nodes drain`), while those that run go on.
import type { Logger } from "pino";
import type { MediaEvent } from "../media/events.ts";
import type { Media } from "../media.ts";
import type { Metrics } from "../metrics.ts";
import type { Denied } from "../publish/denials.ts";
import type { Publishing } from "../publish/lifecycle.ts";
import type { ClusterMembership } from "./membership.ts";

/** Whether this node drains, by its own row as it was last read: it notices at a sign of life. Logs each change. */
export function watchDraining(
  cluster: Pick<ClusterMembership, "epoch" | "nodes">,
  log: Pick<Logger, "info">,
): () => boolean {
  let was = false;
  return () => {
    const drains = cluster.nodes().some(({ epoch, state }) => epoch === cluster.epoch && state === "draining");
    if (drains !== was) log.info(drains ? "draining: this node takes no new publish" : "this node takes publishes");
    was = drains;
    return drains;
  };
}

/** The publishing that refuses every publish request with `refusal` while `isDraining`, and is as given otherwise. */
export function refuseWhile(
  isDraining: () => boolean,
  publishing: Publishing,
  deps: {
    readonly refusal: Denied;
    readonly media: () => Pick<Media, "deny">;
    readonly metrics: Pick<Metrics, "countDenial">;
    readonly log: Pick<Logger, "info">;
  },
): Publishing {
  const { refusal, media, metrics, log } = deps;

  function refuse(protocol: "rtmp" | "whip", address: string): Denied {
    log.info({ cause: refusal.cause, protocol, address }, "publish denied");
    metrics.countDenial(refusal.cause);
    return refusal;
  }

  return {
    ...publishing,
    handle(event: MediaEvent) {
      if (event.kind !== "publish_requested" || !isDraining()) return publishing.handle(event);
      media().deny(event.request, refuse("rtmp", event.address));
    },
    async openWhip(request, open) {
      return isDraining() ? refuse("whip", request.address) : await publishing.openWhip(request, open);
    },
  };
}
