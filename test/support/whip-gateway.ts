// The WHIP endpoint over a real store, real admission, a real customer by HTTPS and a media core that only records.
// No HTTP port is opened; requests go through `app.request`.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect } from "vitest";
import { createApp } from "../../ts/app.ts";
import { loadConfig } from "../../ts/config.ts";
import { createMetrics } from "../../ts/metrics.ts";
import { createLiveSessions } from "../../ts/publish/sessions.ts";
import type { StreamUrlRules } from "../../ts/publish/stream-url.ts";
import { createWhip } from "../../ts/publish/whip.ts";
import { openSecretBox } from "../../ts/store/secret-box.ts";
import { createTokenBroadcasts } from "../../ts/token/broadcasts.ts";
import { loadTokenKeys } from "../../ts/token/keys.ts";
import { openRevocations } from "../../ts/token/revocations.ts";
import { createTokens, type Tokens } from "../../ts/token/tokens.ts";
import { type Customer, startCustomer } from "./customer.ts";
import { openStage, STREAM, type Stage, type StageOptions } from "./publishing.ts";

export const ENDPOINT = "/p/webrtc";
export const ORIGIN = "https://gateway.example";
/** Our own `stream_url`, as a query parameter. */
export const TO_OURSELVES = "stream_url=rtmp://ingest.example/live";
export const TO_STREAM = `${TO_OURSELVES}&stream_name=${STREAM}`;
export const OFFER = "v=0\r\no=- 7316 2 IN IP4 127.0.0.1\r\ns=offer-marker\r\n";
/** A session that never was. */
export const NO_SESSION = "/p/webrtc/3f0c1f0e-5c7c-4b7e-9a9d-0d6f4f6f2f10";
/** UUID version 4, RFC 9562 section 5.4, as part of a regular expression. */
export const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}";
export const VERSION = "0.0.0-test";

export interface WhipAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
}

export interface WhipCall {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent without Content-Length unless `headers` has one. */
  readonly body?: string | Uint8Array;
  /** Scheme, host and port that are called; `ORIGIN` unless given. */
  readonly origin?: string;
  /** The peer's address as the socket tells it. */
  readonly peer?: string;
}

export interface WhipGatewayOptions {
  readonly rules?: Partial<StreamUrlRules>;
  /** Allows private addresses behind a foreign `stream_url`. */
  readonly dev?: boolean;
  readonly publicUrl?: string;
  /** Settings as the environment would give them. */
  readonly env?: Readonly<Record<string, string>>;
  readonly settings?: StageOptions["settings"];
}

export interface WhipGateway extends Pick<Stage, "db" | "media" | "publishing" | "clock" | "end" | "change"> {
  readonly customer: Customer;
  readonly tokens: Tokens;
  /** Everything logged so far, as text. */
  log(): string;
  /** Asserts what every answer carries, whatever it is: `x-api-version`, a new `x-request-id`, CORS. */
  call(method: string, path: string, options?: WhipCall): Promise<WhipAnswer>;
  /** POSTs `OFFER` as application/sdp with this query. */
  offer(query: string, options?: WhipCall): Promise<WhipAnswer>;
  /** Like `offer`, must be answered 201; returns the path of the session and its client id. */
  opened(query?: string, options?: WhipCall): Promise<{ readonly session: string; readonly clientId: number }>;
  /** For a test that listens. */
  fetch(request: Request): Response | Promise<Response>;
  /** What the media core was told to open, in order. */
  openings(): readonly Opening[];
  close(): Promise<void>;
}

type Opening = Extract<Stage["media"]["told"][number], { told: "open_whip" }>;

export async function openWhipGateway(options: WhipGatewayOptions = {}): Promise<WhipGateway> {
  const customer = await startCustomer();
  const { settings = {} } = options;
  const stage = await openStage({ webhook: customer.url, ca: customer.ca, settings });
  const folder = mkdtempSync(join(tmpdir(), "headgate-whip-"));
  const { publicUrl } = options;
  const publicBase = publicUrl === undefined ? {} : { HEADGATE_PUBLIC_URL: publicUrl };
  const env = { HEADGATE_DATA_DIR: folder, ...publicBase, ...options.env };
  const { config } = loadConfig({ env });
  const clock = { now: () => stage.clock.ms };
  const { alg, issuer } = config.token;
  const keys = await loadTokenKeys(stage.db, openSecretBox(folder), { alg, now: clock.now() });
  const lines: string[] = [];
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const revocations = await openRevocations({ db: stage.db, clock, log });
  const tokens = createTokens({ keys, issuer, clock, revocations });
  const requestIds = new Set<string>();
  const media = () => stage.media;
  const rules = { ownHosts: ["ingest.example"], rtmpPort: 1935, allow: [], ...options.rules };
  const app = createApp({
    db: stage.db,
    config,
    clock,
    log,
    tokens,
    revocations,
    tokenBroadcasts: createTokenBroadcasts({
      revocations,
      end: (clientId) => stage.media.end(clientId, "kicked", "Token revoked"),
      onEnded: stage.publishing.onEnded,
    }),
    metrics: createMetrics(),
    checkWebhookUrl: async () => null,
    checkUpstreamUrl: async () => null,
    streamUpstreams: stage.streamUpstreams,
    secretBox: openSecretBox(folder),
    sessions: createLiveSessions({ publishing: stage.publishing, media, dev: options.dev ?? false }),
    secrets: stage.secrets,
    customers: { forget() {} },
    workbench: stage.publishing.workbench,
    rtmpPort: rules.rtmpPort,
    version: VERSION,
    whip: createWhip({
      media,
      publishing: stage.publishing,
      rules,
      dev: options.dev ?? false,
      clock,
      ice: config.ice,
      limits: config.whip.limits,
    }),
  });

  const gateway: WhipGateway = {
    db: stage.db,
    media: stage.media,
    publishing: stage.publishing,
    clock: stage.clock,
    end: stage.end,
    change: stage.change,
    customer,
    tokens,
    log: () => stage.log() + lines.join(""),
    async call(method, path, { headers = {}, body, origin = ORIGIN, peer = "203.0.113.7" } = {}) {
      // As bytes: of a text Request would make a content type.
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
    openings: () => stage.media.told.filter((told) => told.told === "open_whip"),
    async close() {
      revocations.stop();
      await stage.close();
      await customer.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return gateway;
}

/** Asserts a whole problem document: status, type, members, nothing else, and nothing of the offer or the webhook. */
export function expectProblem(answer: WhipAnswer, status: number, code: string, title: string, detail: string): void {
  expect(answer.headers.get("content-type")).toBe("application/problem+json");
  expect(JSON.parse(answer.body)).toStrictEqual({ type: `/docs/problems#${code}`, title, status, detail, code });
  expect(answer.status).toBe(status);
  expect(JSON.stringify([answer.body, ...answer.headers])).not.toMatch(/offer-marker|webhook-secret|localhost/);
}
