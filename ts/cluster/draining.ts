// A node that takes no new publishes because its operator said so (`headgate nodes drain`), while those that run go on.
import type { Logger } from "pino";
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
