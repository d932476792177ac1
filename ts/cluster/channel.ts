// Calls from this node to another: signed, with a time limit, repeated only when the first attempt did not reach the
// node.
import { Agent, type Dispatcher, request } from "undici/index.js";
import { NodeAway } from "../errors/node-away.ts";
import { reasonOf } from "../reason.ts";
import type { Node } from "./nodes.ts";
import { CALL_HEADER, signCall } from "./signature.ts";

/** How long a node may take to accept a connection, and to start its response unless the call says otherwise, ms. */
const CONNECT_LIMIT_MS = 1_000;
const ANSWER_LIMIT_MS = 5_000;
/** Connections to one node; further calls wait. */
const CONNECTIONS_LIMIT = 64;

export interface Call {
  readonly method: Dispatcher.HttpMethod;
  /** Path and query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** As in `SignedCall`. */
  readonly client?: string;
  /** How long the node may take to start its response, ms. */
  readonly answerLimitMs?: number;
  /** Aborts the call. */
  readonly signal?: AbortSignal;
}

/** The header that carries the client's address to the node that answers the request. */
export const CLIENT_HEADER = "headgate-client";
/** The header that carries the id of a request that is passed on. It is not signed: an id grants nothing, and nodes of
 *  the previous version sign without it. */
export const REQUEST_HEADER = "headgate-request";

export interface Channel {
  /** Rejects with `NodeAway` when the node does not answer in time. */
  call(node: Pick<Node, "channel" | "name">, call: Call): Promise<Dispatcher.ResponseData>;
  close(): Promise<void>;
}

/** `key`: the secret that the nodes share; `now`: epoch ms on the store's clock. */
export function openChannel(key: Uint8Array, now: () => number): Channel {
  const agent = new Agent({
    connections: CONNECTIONS_LIMIT,
    pipelining: 1,
    connect: { timeout: CONNECT_LIMIT_MS },
    bodyTimeout: 0, // event streams and previews may be silent for long; their readers abort them
  });

  async function attempt(base: string, call: Call): Promise<Dispatcher.ResponseData> {
    const { method, target, body = new Uint8Array(), client = "", signal, answerLimitMs = ANSWER_LIMIT_MS } = call;
    const signed = signCall(key, { method, target, body, client }, now());
    const headers = { ...call.headers, [CALL_HEADER]: signed, [CLIENT_HEADER]: client };
    return await request(new URL(base + target), {
      ...{ method, headers, dispatcher: agent, body: body.length === 0 ? null : body },
      headersTimeout: answerLimitMs,
      ...(signal && { signal }),
    });
  }

  return {
    async call(node, call) {
      const { channel } = node;
      if (channel === null) throw new NodeAway(`node ${node.name} has no address`);
      try {
        return await attempt(channel, call).catch((error: unknown) => {
          if (call.signal?.aborted || !mayRepeat(call, error)) throw error;
          return attempt(channel, call);
        });
      } catch (cause) {
        if (call.signal?.aborted) throw cause;
        throw new NodeAway(`node ${node.name} does not answer: ${reasonOf(cause)}`, { cause });
      }
    },
    close: () => agent.destroy(),
  };
}

/** Whether a second attempt cannot repeat an effect of the first. */
function mayRepeat({ method }: Call, error: unknown): boolean {
  const code = (error as { readonly code?: string }).code ?? "";
  if (["ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT"].includes(code)) return true;
  const isBroken = ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes(code);
  return isBroken && ["GET", "HEAD", "PUT", "DELETE"].includes(method);
}
