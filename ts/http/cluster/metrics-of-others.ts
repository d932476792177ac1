// Serves metrics of other nodes through this node's metrics port: a process that is draining after an upgrade cannot be
// scraped otherwise.
import type { Registry } from "prom-client";
import type { Channel } from "../../cluster/channel.ts";
import type { Node } from "../../cluster/nodes.ts";
import { NodeAway } from "../../errors.ts";

/** The path that nodes request from each other, and its response. */
export function answersAboutMetrics(
  registry: Pick<Registry, "metrics">,
): Readonly<Record<string, () => Promise<{ readonly text: string }>>> {
  return { "/metrics": async () => ({ text: await registry.metrics() }) };
}

/** By a node's name; null when there is no other node of that name or it does not answer. */
export function createMetricsOf(deps: {
  readonly nodes: () => readonly Node[];
  readonly channel: Channel;
}): (name: string) => Promise<string | null> {
  return async (name) => {
    const node = deps.nodes().find((each) => each.name === name);
    if (node === undefined) return null;
    try {
      const { statusCode, body } = await deps.channel.call(node, { method: "GET", target: "/metrics" });
      const answer = (await body.json()) as { readonly text?: string };
      return statusCode === 200 ? (answer.text ?? null) : null;
    } catch (error) {
      if (error instanceof NodeAway) return null;
      throw error;
    }
  };
}
