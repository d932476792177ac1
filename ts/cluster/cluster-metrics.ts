// Metrics of a node's part in the cluster, for Prometheus. Names are a contract with operators: add, never rename.
import { Counter, Gauge, type Registry } from "prom-client";
import type { ClusterMembership } from "./membership.ts";

export interface ClusterMetrics {
  /** This node has ended what nodes that are gone had left behind. */
  countTakeover(): void;
}

/** `cluster`: null where the node uses the store alone; it then expects no heartbeats and takes nothing over. */
export function watchCluster(
  registry: Registry,
  node: { readonly name: string; readonly version: string; readonly epoch: () => number },
  cluster: Pick<ClusterMembership, "nodes" | "now"> | null,
): ClusterMetrics {
  const registers = [registry];
  new Gauge({
    name: "headgate_node_info",
    help: "Always 1; the labels give the node's name, its epoch (new at each start) and its version",
    labelNames: ["name", "epoch", "version"],
    registers,
    collect() {
      this.reset();
      this.set({ name: node.name, epoch: String(node.epoch()), version: node.version }, 1);
    },
  });
  new Gauge({
    name: "headgate_nodes",
    help: "Serving nodes that share the store, by state, as last read by this node",
    labelNames: ["state"],
    registers,
    collect() {
      const states = cluster?.nodes().map(({ state }) => state) ?? ["up"];
      for (const state of ["up", "draining"]) this.set({ state }, states.filter((of) => of === state).length);
    },
  });
  if (cluster === null) return { countTakeover() {} };
  new Gauge({
    name: "headgate_node_sign_of_life_age_seconds",
    help: "Seconds since the store confirmed this node's last sign of life; after 10 the other nodes may consider it dead",
    registers,
    collect() {
      // After others have declared it dead, its old row is reported until the new one has been read.
      const own = cluster.nodes().find(({ name }) => name === node.name);
      this.set(own === undefined ? Number.NaN : Math.max(0, cluster.now() - own.beatAt) / 1_000);
    },
  });
  const takeovers = new Counter({
    name: "headgate_node_takeovers_total",
    help: "Times this node cleaned up after a node that is gone, even if another node had already done so",
    registers,
  });
  return { countTakeover: () => takeovers.inc() };
}
