// The nodes as people are shown them: those that serve, and those that went away lately.
import type { Kysely } from "kysely";
import type { Schema } from "../store/schema.ts";
import { type Node, namedNodes } from "./nodes.ts";

/** How long a node that died or was stopped is shown, ms. */
const GONE_SHOWN_MS = 86_400_000;

export interface ListedNode extends Omit<Node, "beats"> {
  /** Since the last sign of life, by the store's clock, ms. */
  readonly ageMs: number;
}

/** By name. PostgreSQL only. */
export async function listNodes(db: Kysely<Schema>): Promise<readonly ListedNode[]> {
  return (await namedNodes(db, GONE_SHOWN_MS)).map(({ now, beats: _, ...node }) => ({
    ...node,
    ...(isPresent(node) ? {} : { publishes: 0, load: 0 }),
    ageMs: Math.max(0, now - node.beatAt),
  }));
}

/** Whether others count on it. */
export function isPresent({ state }: Pick<Node, "state">): boolean {
  return state === "up" || state === "draining";
}
