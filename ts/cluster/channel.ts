// Calls from this node to another: signed, with a time limit, repeated only when the first attempt did not reach the
// node.
import { Agent, type Dispatcher, request } from "undici/index.js";
import { NodeAway } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import type { Node } from "./nodes.ts";
import { CALL_HEADER, signCall } from "./signature.ts";

/** How long a node may take to accept a connection, and to start its response unless the call says otherwise, ms. */
const CONNECT_LIMIT_MS = 1_000;
const ANSWER_LIMIT_MS = 5_000;
/** Connections to one node; further calls wait, within their answer limit. Those of long-lived calls are separate, so
 *  that they delay no others, and more than the event streams and previews that a node serves at once
 *  (http/monitoring/events.ts). */
const CONNECTIONS_LIMIT = 64;
const LONG_LIVED_LIMIT = 2_048;

export interface Call {
  readonly method: Dispatcher.HttpMethod;
  /** Path and query. */
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** As in `SignedCall`. */
  readonly client?: string;
  /** How long until the node has started its response, ms; includes waiting for a connection. */
  readonly answerLimitMs?: number;
  /** Whether the response takes long to start, or lasts as long as somebody reads it. */
  readonly isLongLived?: boolean;
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
  const agentOf = (connections: number, bodyTimeout: number) =>
    new Agent({ connections, pipelining: 1, connect: { timeout: CONNECT_LIMIT_MS }, bodyTimeout });
  const shortLived = agentOf(CONNECTIONS_LIMIT, ANSWER_LIMIT_MS);
  // Event streams and previews may be silent for long; their readers abort them.
  const longLived = agentOf(LONG_LIVED_LIMIT, 0);

  async function attempt(base: string, call: Call, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const { method, target, body = new Uint8Array(), client = "" } = call;
    const signed = signCall(key, { method, target, body, client }, now());
    const headers = { ...call.headers, [CALL_HEADER]: signed, [CLIENT_HEADER]: client };
    return await request(new URL(base + target), {
      method,
      headers,
      signal,
      body: body.length === 0 ? null : body,
      dispatcher: call.isLongLived ? longLived : shortLived,
      headersTimeout: 0, // would not include waiting for a connection; `limited` does
    });
  }

  return {
    async call(node, call) {
      const { channel } = node;
      if (channel === null) throw new NodeAway(`node ${node.name} has no address`);
      try {
        return await limited(call, (signal) =>
          attempt(channel, call, signal).catch((error: unknown) => {
            if (signal.aborted || !mayRepeat(call, error)) throw error;
            return attempt(channel, call, signal);
          }),
        );
      } catch (cause) {
        if (call.signal?.aborted) throw cause;
        throw new NodeAway(`node ${node.name} does not answer: ${reasonOf(cause)}`, { cause });
      }
    },
    async close() {
      await Promise.all([shortLived.destroy(), longLived.destroy()]);
    },
  };
}

/** Rejects at the answer limit, or when the call is aborted, even while the attempt waits for a connection: undici
 *  notices that only once there is one, and then sends nothing. */
async function limited<T>(call: Call, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { signal: callers, answerLimitMs = ANSWER_LIMIT_MS } = call;
  callers?.throwIfAborted();
  const controller = new AbortController();
  const { signal } = controller;
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  // Also later: the caller's signal ends the response.
  callers?.addEventListener("abort", () => controller.abort(callers.reason), { once: true });
  const late = () => controller.abort(new Error(`no answer within ${answerLimitMs} ms`));
  const timer = setTimeout(late, answerLimitMs);
  try {
    return await Promise.race([attempt(signal), aborted]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether a second attempt cannot repeat an effect of the first. */
function mayRepeat({ method }: Call, error: unknown): boolean {
  const code = (error as { readonly code?: string }).code ?? "";
  if (["ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT"].includes(code)) return true;
  const isBroken = ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"].includes(code);
  return isBroken && ["GET", "HEAD", "PUT", "DELETE"].includes(method);
}
