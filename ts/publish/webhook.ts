// Posts one event to a customer's webhook and says what came back. Knows HTTP, deadlines and the address guard;
// not what an answer means for a publish.
import { randomBytes } from "node:crypto";
import { createSecureContext, rootCertificates } from "node:tls";
import type { Logger } from "pino";
import { Agent, buildConnector, type Dispatcher, request } from "undici";
import { AddressRefused, guardConnector, guardedLookup } from "./address-guard.ts";

/** Most body bytes read from an answer before its connection is dropped (W10). */
const ANSWER_BODY_LIMIT_BYTES = 64 * 1024;
/** Longest reason taken from a 403 for the broadcaster, in characters (W26). */
const REASON_LIMIT_CHARACTERS = 200;
/** Most connections to one origin; further calls wait within their deadline (W25). */
const CONNECTIONS_LIMIT = 100;
/** How long an idle connection is kept when the customer does not say otherwise, ms. */
const KEEP_ALIVE_MS = 30_000;
/** Bounds connection attempts whose call has already given up, ms. */
const CONNECT_LIMIT_MS = 10_000;
/** Pause before the one retry of W13, ms: a customer's server that restarts is back soon. */
const RETRY_PAUSE_MS = 100;
/** Answers slower than this delay broadcasters noticeably (specification, "Limits"), ms. */
const SLOW_ANSWER_MS = 300;

export interface WebhookCall {
  readonly url: string;
  /** The webhook-id: the same over all attempts for one event. */
  readonly id: string;
  readonly body: Uint8Array;
  /** For everything together: DNS, TCP, TLS, request, status (W11), ms. */
  readonly deadlineMs: number;
  /** Try a second time when the connection failed before any request byte was written (W13). */
  readonly retryConnection: boolean;
}

export type WebhookAnswer =
  | {
      readonly outcome: "answered";
      /** HTTP status; redirects are answers like any other. */
      readonly status: number;
      /** First line of a 403's plain text, at most 200 printable characters (W26); null when there is none. */
      readonly reason: string | null;
      /** The Retry-After header as it came, or null. */
      readonly retryAfter: string | null;
    }
  | { readonly outcome: "unreachable"; readonly cause: "deadline" | "connection" | "address_refused" };

export interface Webhook {
  /** Never rejects: no usable answer is a value. Resolves `deadlineMs` after the call at the latest. */
  post(call: WebhookCall): Promise<WebhookAnswer>;
  /** Closes every connection; calls still in flight become unreachable. */
  close(): Promise<void>;
}

/** A connection that failed before a request byte could be written on it. */
class NotConnected extends Error {
  readonly code = "not_connected";
  constructor(cause: Error) {
    super("webhook connection failed", { cause });
    this.name = "NotConnected";
  }
}

/** A fresh webhook-id. */
export function newWebhookId(): string {
  return `msg_${randomBytes(16).toString("hex")}`;
}

/** `webhookCa`: PEM certificates trusted beside the public ones, or null. `dev` allows private addresses. */
export function createWebhook(options: {
  readonly webhookCa: string | null;
  readonly dev: boolean;
  readonly log: Logger;
}): Webhook {
  const agent = new Agent({
    connect: connector(options),
    connections: CONNECTIONS_LIMIT,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  return {
    async post(call) {
      const signal = AbortSignal.timeout(call.deadlineMs);
      const first = await attempt(agent, call, signal);
      const answer = call.retryConnection && first === "not_connected" ? await retry(agent, call, signal) : first;
      return answer === "not_connected" ? { outcome: "unreachable", cause: "connection" } : answer;
    },
    async close() {
      await agent.destroy();
    },
  };

  async function retry(dispatcher: Dispatcher, call: WebhookCall, signal: AbortSignal) {
    await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
    return await attempt(dispatcher, call, signal);
  }

  async function attempt(
    dispatcher: Dispatcher,
    call: WebhookCall,
    signal: AbortSignal,
  ): Promise<WebhookAnswer | "not_connected"> {
    const startedAt = performance.now(); // a duration, not the time of day: the given clock may be set back
    try {
      const posting = request(call.url, {
        dispatcher,
        method: "POST",
        headers: headers(call),
        body: call.body,
        signal,
      });
      // undici lets a call wait for its connection beyond its signal (it only never writes it then).
      const response = await Promise.race([posting, rejectedBy(signal)]);
      const tookMs = performance.now() - startedAt;
      if (tookMs > SLOW_ANSWER_MS) {
        options.log.warn({ host: new URL(call.url).host, tookMs: Math.round(tookMs) }, "webhook answered slowly");
      }
      return {
        outcome: "answered",
        status: response.statusCode,
        reason: await reasonOf(response, signal),
        retryAfter: single(response.headers["retry-after"]),
      };
    } catch (error) {
      if (signal.aborted) return { outcome: "unreachable", cause: "deadline" };
      if (!(error instanceof NotConnected)) return { outcome: "unreachable", cause: "connection" };
      return error.cause instanceof AddressRefused
        ? { outcome: "unreachable", cause: "address_refused" }
        : "not_connected";
    }
  }
}

/** Rejects when `signal` aborts. */
function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Every header of a call. Signatures (W9) belong here: they cover the id, a timestamp and the raw body. */
function headers(call: WebhookCall): Record<string, string> {
  return {
    "content-type": "application/x-www-form-urlencoded",
    "user-agent": "headgate-webhook/1",
    "webhook-id": call.id,
  };
}

function connector(options: { readonly webhookCa: string | null; readonly dev: boolean }): buildConnector.connector {
  // One context for all connections: parsing the public roots anew costs milliseconds each time.
  const trust =
    options.webhookCa === null
      ? {}
      : { secureContext: createSecureContext({ ca: [...rootCertificates, options.webhookCa] }) };
  const guard = options.dev ? {} : { lookup: guardedLookup() };
  const plain = buildConnector({ timeout: CONNECT_LIMIT_MS, ...trust, ...guard });
  const connect = options.dev ? plain : guardConnector(plain);
  return (target, callback) =>
    connect(target, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (error === null) callback(null, socket);
      else callback(new NotConnected(error), null);
    });
}

/** Reads what W26 allows of the answer's body and drops the rest. Only a 403 is waited for. */
async function reasonOf(response: Dispatcher.ResponseData, signal: AbortSignal): Promise<string | null> {
  const type = single(response.headers["content-type"]) ?? "";
  const readable = /^text\/plain\s*(;|$)/i.test(type) && response.headers["content-encoding"] === undefined;
  if (response.statusCode !== 403 || !readable) {
    // In the background: the connection is kept for the next call when the body ends in time.
    response.body.dump({ limit: ANSWER_BODY_LIMIT_BYTES, signal }).catch(() => {});
    return null;
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > ANSWER_BODY_LIMIT_BYTES) break; // leaving the loop destroys the body and its connection
    }
  } catch {
    // A body cut short does not change the status; what came of its first line is used.
  }
  return firstLine(Buffer.concat(chunks));
}

function firstLine(body: Buffer): string | null {
  const line = body.toString("utf8").split(/[\r\n]/, 1)[0] ?? "";
  const printable = line.replace(/[\p{C}\p{Zl}\p{Zp}\ufffd]/gu, "").trim();
  const short = [...printable].slice(0, REASON_LIMIT_CHARACTERS).join("").trim();
  return short === "" ? null : short;
}

function single(header: string | string[] | undefined): string | null {
  return (Array.isArray(header) ? header[0] : header) ?? null;
}
