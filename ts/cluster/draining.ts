// A node that accepts no new publishes on request of its operator (`headgate nodes drain`), while running ones
// continue.
import type { Logger } from "pino";
import type { ClusterMembership } from "./membership.ts";

/** Whether this node is draining, according to its own row as last read, at the latest heartbeat. Logs each change. */
export function watchDraining(
  cluster: Pick<ClusterMembership, "epoch" | "nodes">,
  log: Pick<Logger, "info">,
): () => boolean {
  let was = false;
  return () => {
    const drains = cluster.nodes().some(({ epoch, state }) => epoch === cluster.epoch && state === "draining");
    if (drains !== was) log.info(drains ? "draining: no new publish is accepted" : "publishes are accepted again");
    was = drains;
    return drains;
  };
}
