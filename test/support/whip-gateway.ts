// The WHIP endpoint over a real store, real admission, a real customer over HTTPS and a media core that only records
// its calls. No HTTP port is opened; requests go through `app.request`.

import { expect } from "vitest";
import type { Capacity } from "../../ts/capacity/capacity.ts";
import { readVersion } from "../../ts/config.ts";
import type { Tokens } from "../../ts/token/tokens.ts";
import { type Customer, startCustomer } from "./customer.ts";
import { openStage, STREAM, type Stage, type StageOptions } from "./publishing.ts";

export const ENDPOINT = "/p/webrtc";
export const ORIGIN = "https://gateway.example";
/** Our own `stream_url`, as a query parameter. */
export const TO_OURSELVES = "stream_url=rtmp://ingest.example/live";
export const TO_STREAM = `${TO_OURSELVES}&stream_name=${STREAM}`;
export const OFFER = "v=0\r\no=- 7316 2 IN IP4 127.0.0.1\r\ns=offer-marker\r\n";
/** A session that never existed. */
export const NO_SESSION = "/p/webrtc/3f0c1f0e-5c7c-4b7e-9a9d-0d6f4f6f2f10";
/** UUID version 4, RFC 9562 section 5.4, as part of a regular expression. */
export const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
export const VERSION = readVersion();

export interface WhipAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export interface WhipCall {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent without Content-Length unless `headers` has one. */
  readonly body?: string | Uint8Array;
  /** Scheme, host and port of the request; `ORIGIN` by default. */
  readonly origin?: string;
  /** The peer's address as reported by the socket. */
  readonly peer?: string;
}

export interface WhipGatewayOptions {
  /** Other hosts that a `stream_url` may name. */
  readonly allow?: readonly string[];
  readonly publicUrl?: string;
  /** Settings as in the environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly settings?: StageOptions["settings"];
  readonly capacity?: Capacity;
  readonly resolve?: StageOptions["resolve"];
}

export interface WhipGateway extends Pick<Stage, "db" | "media" | "publishing" | "clock" | "end" | "change"> {
  readonly customer: Customer;
  readonly tokens: Tokens;
  /** Everything logged so far, as text. */
  log(): string;
  /** Asserts what every answer must carry: `x-api-version`, a new `x-request-id`, CORS. */
  call(method: string, path: string, options?: WhipCall): Promise<WhipAnswer>;
  /** POSTs `OFFER` as application/sdp with this query. */
  offer(query: string, options?: WhipCall): Promise<WhipAnswer>;
  /** Like `offer`, but the answer must be 201; returns the path of the session and its client id. */
  opened(query?: string, options?: WhipCall): Promise<{ readonly session: string; readonly clientId: number }>;
  /** For a test that listens on a port. */
  fetch(request: Request): Response | Promise<Response>;
  /** What the media core was told to open, in order. */
  openings(): readonly Opening[];
  close(): Promise<void>;
}

type Opening = Extract<Stage["media"]["commands"][number], { command: "open_whip" }>;

export async function openWhipGateway(options: WhipGatewayOptions = {}): Promise<WhipGateway> {
  const customer = await startCustomer();
  const { settings = {}, publicUrl, allow = [], capacity, resolve } = options;
  const env = {
    HEADGATE_INGEST_HOSTS: "ingest.example",
    HEADGATE_UPSTREAM_ALLOW: allow.join(","),
    ...(publicUrl === undefined ? {} : { HEADGATE_PUBLIC_URL: publicUrl }),
    ...options.env,
  };
  const stage = await openStage({
    webhook: customer.url,
    ca: customer.ca,
    settings,
    env,
    ...(capacity && { capacity }),
    ...(resolve && { resolve }),
  });
  const { app, tokens } = stage.service;
  const requestIds = new Set<string>();

  const gateway: WhipGateway = {
    db: stage.db,
    media: stage.media,
    publishing: stage.publishing,
    clock: stage.clock,
    end: stage.end,
    change: stage.change,
    customer,
    tokens,
    log: stage.log,
    async call(method, path, { headers = {}, body, origin = ORIGIN, peer = "203.0.113.7" } = {}) {
      // As bytes, because Request would derive a content type from text.
      const bytes = body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) };
      const response = await app.request(
        `${origin}${path}`,
        { method, headers, ...bytes },
        { incoming: { socket: { remoteAddress: peer, remotePort: 50_000, remoteFamily: "IPv4" } } },
      );
      const { status, headers: answered } = response;
      const requestId = answered.get("x-request-id") ?? "";
      expect(answered.get("x-api-version")).toBe("1");
      expect(requestId).toMatch(new RegExp(`^${UUID}$`));
      expect(requestIds).not.toContain(requestId);
      requestIds.add(requestId);
      expect(answered.get("access-control-allow-origin")).toBe("*");
      expect(answered.get("access-control-expose-headers")).toContain("Location, ETag, Link");
      return { status, headers: answered, body: await response.text() };
    },
    offer: (query, call = {}) =>
      gateway.call("POST", `${ENDPOINT}?${query}`, {
        body: OFFER,
        ...call,
        headers: { "content-type": "application/sdp", ...call.headers },
      }),
    async opened(query = TO_STREAM, call = {}) {
      const { status, headers, body } = await gateway.offer(query, call);
      expect(status, body).toBe(201);
      const { clientId } = gateway.openings().at(-1) ?? { clientId: -1 };
      return { session: new URL(headers.get("location") ?? "").pathname, clientId };
    },
    fetch: app.fetch,
    openings: () => stage.media.commands.filter((each) => each.command === "open_whip"),
    async close() {
      await stage.close();
      await customer.close();
    },
  };
  return gateway;
}

/** Asserts a complete problem document: status, type and members, nothing else, and nothing of the offer or the
 *  webhook. */
export function expectProblem(answer: WhipAnswer, status: number, code: string, title: string, detail: string): void {
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(JSON.parse(answer.body)).toStrictEqual({ type: `/docs/problems#${code}`, title, status, detail, code });
  expect(answer.status).toBe(status);
  expect(JSON.stringify([answer.body, ...answer.headers])).not.toMatch(/offer-marker|webhook-secret|localhost/);
}
