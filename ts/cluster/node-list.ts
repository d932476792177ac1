// The nodes as shown to people: those that serve, and those that left recently.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import { formerName, type Node, type NodeStatus, namedNodes } from "./nodes.ts";

/** How long a node that died or was stopped is shown, ms. */
const GONE_SHOWN_MS = 86_400_000;

export interface ListedNode extends Omit<Node, "beats"> {
  /** Age of the last heartbeat, on the store's clock, ms. */
  readonly ageMs: number;
}

/** Sorted by name. */
export async function listNodes(db: Kysely<Schema>): Promise<readonly ListedNode[]> {
  const nodes = await namedNodes(db, GONE_SHOWN_MS);
  // A node replaced by a successor process is shown only while it is still present.
  const shown = nodes.filter((node) => isPresent(node) || !node.name.endsWith(formerName("", node.epoch)));
  return shown.map(({ now, beats: _, ...node }) => ({
    ...node,
    ...(isPresent(node) ? {} : { publishes: 0, load: 0, full: null }),
    ageMs: Math.max(0, now - node.beatAt),
  }));
}

/** The processes that an upgrade has left running beside the node with this epoch. */
export async function besides(db: Kysely<Schema>, epoch: number): Promise<readonly DeploymentNode[]> {
  const others = (await listNodes(db)).filter((node) => isPresent(node) && node.epoch !== epoch);
  return others.map((node) => ({ ...node, isThis: false }));
}

/** Whether the node is present in the cluster. */
export function isPresent({ state }: Pick<Node, "state">): boolean {
  return state === "up" || state === "draining";
}

export interface DeploymentNode extends ListedNode {
  /** Whether it is the node that made the list. */
  readonly isThis: boolean;
}

/** Lists all nodes on behalf of one; null while the store does not answer. `alone`: for a node that uses the store
 *  alone and sends no heartbeats; its predecessors may still be listed beside it. */
export function createNodeList(deps: {
  readonly db: Kysely<Schema>;
  readonly node: { readonly name: string; readonly version: string; readonly epoch: () => number };
  readonly alone: (() => Pick<NodeStatus, "publishes" | "load" | "full">) | null;
  /** Epoch ms. */
  readonly clock: { now(): number };
}): () => Promise<readonly DeploymentNode[] | null> {
  const { db, node, alone, clock } = deps;
  const startedAt = clock.now();
  if (alone === null) {
    return async () => {
      const nodes = await listNodes(db).catch(() => null);
      return nodes?.map((each) => ({ ...each, isThis: each.epoch === node.epoch() })) ?? null;
    };
  }
  return async () => {
    const times = { startedAt, beatAt: clock.now(), ageMs: 0 };
    const addresses = { channel: null, http: null, rtmp: null };
    const own = {
      ...node,
      epoch: node.epoch(),
      state: "up" as const,
      ...addresses,
      ...alone(),
      ...times,
      isThis: true,
    };
    return [own, ...(await besides(db, own.epoch).catch(() => []))];
  };
}
