// Queries each of the other nodes for its running publishes. A node that does not answer in time is left out.
import type { Logger } from "pino";
import type { Channel } from "../../cluster/channel.ts";
import type { Node } from "../../cluster/nodes.ts";
import type { Owners } from "../../cluster/owners.ts";
import { NodeAway } from "../../errors.ts";
import type { StreamUpstreams } from "../../organisation/upstreams.ts";
import type { Publishing } from "../../publish/lifecycle.ts";
import type { LiveSession, LiveSessions, UpstreamChange } from "../../publish/live-sessions.ts";
import type { Measurements } from "../../publish/monitoring/measurements.ts";
import type { Intent } from "../../publish/record.ts";
import { type LiveRow, liveRow } from "../monitoring/live-row.ts";
import { UPSTREAMS_CHANGED } from "./forwarding.ts";

/** Less than a second, since some callers ask every second, ms. */
const ANSWER_LIMIT_MS = 900;

export interface Others {
  /** Of one organisation, like `LiveSessions.list`. */
  sessions(organisationId: string, page: { readonly after: number; readonly quantity: number }): Promise<LiveSession[]>;
  /** Of one organisation, as rows of a list. */
  rows(organisationId: string): Promise<LiveRow[]>;
}

/** The paths that nodes request from each other, and their responses. */
export function answersToOthers(deps: {
  readonly sessions: LiveSessions;
  readonly measurements: Measurements;
  readonly publishing: Pick<Publishing, "find">;
  readonly streamUpstreams: Pick<StreamUpstreams, "list">;
}): Readonly<Record<string, (asked: URLSearchParams) => unknown>> {
  const organisationIn = (asked: URLSearchParams) => asked.get("organisation") ?? "";
  return {
    "/sessions": (asked) => {
      const [after, quantity] = [Number(asked.get("after")), Number(asked.get("quantity"))];
      return deps.sessions.list(organisationIn(asked), { after, quantity, isMeant: () => true });
    },
    "/rows": (asked) => deps.measurements.ofOrganisation(organisationIn(asked)).map(liveRow),
    [UPSTREAMS_CHANGED]: async (asked) => {
      const publish = deps.publishing.find(Number(asked.get("client")));
      if (publish !== undefined) await followStored(deps, publish.intent);
      return {};
    },
  };
}

/** Brings the running publish of a stream into line with the stream's stored upstreams. */
async function followStored(
  { sessions, streamUpstreams }: Pick<Parameters<typeof answersToOthers>[0], "sessions" | "streamUpstreams">,
  { organisationId, streamId }: Pick<Intent, "organisationId" | "streamId">,
): Promise<void> {
  const stored = await streamUpstreams.list(organisationId, streamId);
  const live = sessions.upstreamsOf(organisationId, streamId).filter(({ source }) => source === "stream");
  const follow = (change: UpstreamChange) => sessions.followStream(organisationId, streamId, change);
  for (const { id } of live) if (stored.every((upstream) => upstream.id !== id)) follow({ removed: id });
  for (const upstream of stored) {
    const known = live.find(({ id }) => id === upstream.id);
    if (known === undefined) follow({ added: upstream });
    else if (upstream.paused !== (known.state === "paused"))
      follow(upstream.paused ? { paused: upstream.id } : { resumed: upstream.id });
  }
}

export function createOthers(deps: {
  readonly owners: Pick<Owners, "others">;
  readonly channel: Channel;
  readonly log: Logger;
}): Others {
  async function ask<T>(node: Node, path: string, asked: Readonly<Record<string, string>>): Promise<T[]> {
    const target = `${path}?${new URLSearchParams(asked)}`;
    try {
      const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
      const { statusCode, body } = await deps.channel.call(node, { method: "GET", target, signal });
      if (statusCode !== 200) throw new NodeAway(`node ${node.name} answers ${statusCode}`);
      return (await body.json()) as T[];
    } catch (err) {
      deps.log.warn({ err, node: node.name }, "publishes of another node could not be read");
      return [];
    }
  }

  async function each<T>(path: string, asked: Readonly<Record<string, string>>): Promise<T[]> {
    return (await Promise.all(deps.owners.others().map((node) => ask<T>(node, path, asked)))).flat();
  }

  return {
    sessions: (organisation, { after, quantity }) =>
      each("/sessions", { organisation, after: String(after), quantity: String(quantity) }),
    rows: (organisation) => each("/rows", { organisation }),
  };
}
