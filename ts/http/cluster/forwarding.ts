// Forwards requests about a publish that runs on another node, unchanged, and streams its response back. So every route
// handles only the publishes of its own node.
import { Readable } from "node:stream";
import type { Context } from "hono";
import { type Call, type Channel, CLIENT_HEADER, REQUEST_HEADER } from "../../cluster/channel.ts";
import type { Node } from "../../cluster/nodes.ts";
import type { Owned, Owners } from "../../cluster/owners.ts";
import { BodyTooLarge, NodeAway } from "../../errors.ts";
import type { Ending } from "../../publish/ending/ending.ts";
import { traceHeaders } from "../../tracing/trace.ts";
import type { Forward } from "../openapi.ts";
import { BODY_LIMIT_BYTES, type ClientAddress, outgoingOf, passedOn } from "../request/request.ts";

/** Added to the URL of an offer that a node has redirected: another node that has no room either refuses it, so that a
 *  client is not sent back and forth between two full nodes. WHIP ignores unknown parameters (P1). */
const SENT_ON = "headgate-sent-on";
/** Where a node accepts requests that others pass on. */
export const PASSED_ON = "/passed-on";
/** Where a node is told that the upstreams of a publish have changed. */
export const UPSTREAMS_CHANGED = "/upstreams-changed";
/** How long the node that an offer is passed to may take, ms: it calls the customer's webhook, 10 s at most (W11), and may have
 *  to end another publish first. */
const OFFER_ANSWER_LIMIT_MS = 15_000;
/** Another id is that of no publish. */
const CLIENT_ID = /^\d{1,16}$/;
/** Headers of one connection (RFC 9110 7.6.1, and 10.1.1: the body has been read), and those that belong to the first node. */
const OF_ONE_HOP = [
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "te",
  "content-length",
  "expect",
  "x-forwarded-for",
];

export interface Elsewhere {
  readonly owners: Owners;
  readonly channel: Channel;
  /** Records the end of a publish for its node, which does not answer at present. */
  keepEnd(of: Owned, ending: Ending | null): Promise<void>;
}

/** Serves requests on the node that has the publish they are about. */
export function forwarding({ owners, channel, keepEnd }: Elsewhere, clientAddress: ClientAddress): Forward {
  return ({ about, idOf, ends, changesUpstreams, long, answersWithinMs }) => {
    return async (c, next) => {
      if (passedOn(c) !== null) return await next();
      const found = await ownerOf(c);
      if (found === null) return ends || changesUpstreams ? await changeHere(c, next) : await next();
      try {
        const limits = { isLongLived: long, ...(answersWithinMs && { answerLimitMs: answersWithinMs }) };
        return await passTo(channel, found.node, c, clientAddress(c), limits);
      } catch (error) {
        if (!(error instanceof NodeAway) || found.owned === null || !ends) throw error;
        return await keepAndDo(c, next, found.owned, error);
      }
    };

    async function ownerOf(c: Context): Promise<{ readonly node: Node; readonly owned: Owned | null } | null> {
      const id = await idOf(c);
      if (id === null) return null;
      if (about === "session") {
        const node = owners.ofSession(id);
        return node && { node, owned: null };
      }
      const owned = await (about === "stream"
        ? owners.ofStream(id)
        : CLIENT_ID.test(id) && owners.ofClient(Number(id)));
      return owned ? { node: owned.node, owned } : null;
    }

    /** Another node may have accepted a publish while the change was made here: that one ends at its node's next
     *  heartbeat, or its node reads the upstreams again. */
    async function changeHere(c: Context, next: () => Promise<void>): Promise<void> {
      await next();
      if (c.res.status !== 200) return;
      const late = await ownerOf(c);
      if (!late?.owned) return;
      if (ends) await keepEnd(late.owned, c.get("ending") ?? null);
      else await readAgain(late.owned);
    }
  };

  /** A node that does not answer may be dead: its next publish reads them. */
  async function readAgain({ node, clientId }: Owned): Promise<void> {
    const target = `${UPSTREAMS_CHANGED}?client=${clientId}`;
    await channel.call(node, { method: "GET", target }).then(
      ({ body }) => body.dump(),
      () => {},
    );
  }

  /** The caller is authorised and the stored part of the change is made here; the node learns of the end when it is
   *  back. */
  async function keepAndDo(c: Context, next: () => Promise<void>, owned: Owned, away: NodeAway): Promise<void> {
    c.set("away", owned);
    await next();
    if (c.res.status !== 200) return;
    await keepEnd(owned, c.get("ending") ?? null);
    throw away;
  }
}

/** An offer that this node does not take: the client is redirected to one that does (RFC 9725 4.5). With credentials it
 *  is passed on instead, because browsers drop them when a redirect leads to another origin. */
export function placement({ owners, channel }: Elsewhere, clientAddress: ClientAddress) {
  return async (c: Context): Promise<Response | undefined> => {
    const { pathname, search, searchParams } = new URL(c.req.url);
    const node = passedOn(c) === null && !searchParams.has(SENT_ON) ? owners.withRoom() : null;
    if (node === null) return undefined;
    if (c.req.header("authorization") !== undefined) {
      const limits = { answerLimitMs: OFFER_ANSWER_LIMIT_MS, isLongLived: true };
      return await passTo(channel, node, c, clientAddress(c), limits);
    }
    const sentOn = `${search === "" ? "?" : "&"}${SENT_ON}=1`;
    return c.body(null, 307, { location: `${node.http}${pathname}${search}${sentOn}` });
  };
}

/** Passes a request to another node and streams its response. */
async function passTo(
  channel: Channel,
  node: Node,
  c: Context,
  client: string,
  limits: Pick<Call, "answerLimitMs" | "isLongLived">,
): Promise<Response> {
  const url = new URL(c.req.url);
  const headers = Object.fromEntries([...c.req.raw.headers].filter(([name]) => !OF_ONE_HOP.includes(name)));
  const answer = await channel.call(node, {
    method: c.req.method as "GET",
    target: PASSED_ON + url.pathname + url.search,
    // After the client's own headers, which must not set the id.
    headers: { ...headers, host: url.host, ...traceHeaders(c.get("trace")), [REQUEST_HEADER]: c.get("requestId") },
    body: await bodyOf(c),
    client,
    signal: abortedWith(c),
    ...limits,
  });
  const said = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    if (OF_ONE_HOP.includes(name) || name === "x-request-id" || value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) said.append(name, each);
  }
  const isEmpty = [204, 304].includes(answer.statusCode) || c.req.method === "HEAD";
  if (isEmpty) await answer.body.dump();
  const body = isEmpty ? null : (Readable.toWeb(answer.body) as ReadableStream);
  return new Response(body, { status: answer.statusCode, headers: said });
}

/** At most as much as any route reads, so that a local route can still read it. Rejects with `BodyTooLarge`. */
async function bodyOf(c: Context): Promise<Uint8Array> {
  if (c.req.method !== "PATCH") return new Uint8Array(await c.req.arrayBuffer());
  // The body is not bounded here, because a PATCH looks up its session first (P8).
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of c.req.raw.body ?? []) {
    size += part.length;
    if (size > BODY_LIMIT_BYTES) throw new BodyTooLarge(`over ${BODY_LIMIT_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Aborts when the client has disconnected, also before the call. */
function abortedWith(c: Context): AbortSignal {
  const outgoing = outgoingOf(c);
  const controller = new AbortController();
  if (outgoing?.destroyed === true) controller.abort();
  outgoing?.once("close", () => controller.abort());
  return controller.signal;
}

/** The client's address as another node reports it for a request that it passes on. */
export const clientOf = (c: Context) => c.req.header(CLIENT_HEADER) ?? "";

/** The id that another node gave to a request that it passes on; null from a node of the previous version. */
export function requestIdOf(c: Context): string | null {
  const id = c.req.header(REQUEST_HEADER) ?? "";
  return /^[0-9a-f-]{36}$/.test(id) ? id : null;
}
