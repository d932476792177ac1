// The nodes as people are shown them: those that serve, and those that went away lately.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import { formerName, type Node, type NodeStatus, namedNodes } from "./nodes.ts";

/** How long a node that died or was stopped is shown, ms. */
const GONE_SHOWN_MS = 86_400_000;

export interface ListedNode extends Omit<Node, "beats"> {
  /** Since the last sign of life, by the store's clock, ms. */
  readonly ageMs: number;
}

/** By name. */
export async function listNodes(db: Kysely<Schema>): Promise<readonly ListedNode[]> {
  const nodes = await namedNodes(db, GONE_SHOWN_MS);
  // One that was followed by another process is shown while it is there.
  const shown = nodes.filter((node) => isPresent(node) || !node.name.endsWith(formerName("", node.epoch)));
  return shown.map(({ now, beats: _, ...node }) => ({
    ...node,
    ...(isPresent(node) ? {} : { publishes: 0, load: 0, full: null }),
    ageMs: Math.max(0, now - node.beatAt),
  }));
}

/** What an upgrade has left beside the node of this epoch. */
export async function besides(db: Kysely<Schema>, epoch: number): Promise<readonly DeploymentNode[]> {
  const others = (await listNodes(db)).filter((node) => isPresent(node) && node.epoch !== epoch);
  return others.map((node) => ({ ...node, isThis: false }));
}

/** Whether others count on it. */
export function isPresent({ state }: Pick<Node, "state">): boolean {
  return state === "up" || state === "draining";
}

export interface DeploymentNode extends ListedNode {
  /** It is the one that lists them. */
  readonly isThis: boolean;
}

/** How a node lists all of them; null while the store does not answer. `alone`: of a node that has the store for itself,
 *  which nobody waits for signs of life of; beside it there may be those that it follows. */
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
