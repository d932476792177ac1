// /p/webrtc: the WHIP endpoint (RFC 9725; P1–P6, P9–P11, P13). Its sessions are in whip-session.ts. CORS is implemented
// by hand: browsers publish from any page, and a middleware would answer OPTIONS without Accept-Post.
import { type Context, Hono } from "hono";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import { isOfNode } from "../../publish/denials.ts";
import type { Refusals } from "../../publish/refusals/refusals.ts";
import { audioBitrateWithin, CONNECT_INFO_LIMIT_BYTES, readConnectInfo } from "../../publish/whip/whip-parameters.ts";
import type { Whip, WhipOutcome, WhipRequest } from "../../publish/whip/whip-publishes.ts";
import { percentDecoded } from "../../text/percent.ts";
import { isSameIngestUrl } from "../../token/ingest-url.ts";
import { opensStreamsOf, type TokenClaims, type Tokens } from "../../token/tokens.ts";
import type { Env } from "../openapi.ts";
import { type LoggedSubject, noteForLog } from "../request/caller.ts";
import { baseUrlOf, type ClientAddress, hasLeft, outgoingOf } from "../request/request.ts";
import { setWhipHeaders, WHIP_PATH, WhipProblem } from "./whip-problems.ts";
import { bearerOf, notingRefusals } from "./whip-refusals.ts";

const METHODS = "POST, PATCH, DELETE, GET, OPTIONS";
const ALLOW_HEADERS = "Authorization, Content-Type, If-Match, ETag, traceparent, tracestate";
/** How long a browser may cache a preflight, seconds. */
const PREFLIGHT_AGE_S = 86_400;

export interface WhipDeps {
  readonly config: Pick<Config, "http">;
  readonly log: Logger;
  readonly tokens: Tokens;
  readonly whip: Whip;
  readonly refusals: Pick<Refusals, "note">;
  readonly version: string;
  readonly clientAddress: ClientAddress;
  /** Passes an offer to another node that accepts it; undefined when there is none. */
  readonly placement?: (c: Context) => Promise<Response | undefined>;
}

export function whipRoutes({
  config,
  log,
  tokens,
  whip,
  refusals,
  version,
  clientAddress,
  placement,
}: WhipDeps): Hono<Env> {
  const routes = new Hono<Env>();
  const session = `${WHIP_PATH}/:session`;

  routes.use(`${WHIP_PATH}/*`, async (c, next) => {
    await next();
    setWhipHeaders(c.res.headers);
  });

  routes.get(`${WHIP_PATH}/status.json`, (c) => c.json({ server_version: version }));
  for (const path of [WHIP_PATH, session, `${session}/metadata`]) {
    routes.options(path, (c) => {
      c.header("accept-post", "application/sdp");
      c.header("accept-patch", "application/trickle-ice-sdpfrag");
      c.header("access-control-allow-methods", METHODS);
      c.header("access-control-allow-headers", ALLOW_HEADERS);
      c.header("access-control-max-age", String(PREFLIGHT_AGE_S));
      return c.body(null, 200);
    });
  }
  // RFC 9725 4.1: an empty response, not an error.
  routes.get(WHIP_PATH, (c) => c.body(null, 204));

  routes.post(WHIP_PATH, async (c) => {
    const address = clientAddress(c);
    const query = readQuery(c.req.url);
    const name = query.get("stream_name") ?? null;
    const request = await notingRefusals({ refusals, tokens }, { c, address, name }, async () => {
      const hit = whip.limit(address, "offer");
      if (hit !== null) throw WhipProblem.limited(hit);
      if (!isSdp(c.req.header("content-type"))) {
        throw WhipProblem.fault("unsupported_media_type", "An offer must be sent as application/sdp");
      }
      const offer = await c.req.text();
      const claims = await claimsOf(c.req.header("authorization"), tokens);
      if (claims !== null) noteForLog(c, { caller: "token", callerId: claims.jti });
      return {
        ...targetOf(query, claims),
        claims,
        trace: c.get("trace"),
        offer,
        address,
        requestHost: new URL(c.req.url).hostname,
        stereo: query.get("stereo")?.toString() === "1",
        audioBitrate: audioBitrateOf(query.get("audio_bitrate")),
        connectInfo: connectInfoOf(query.get("connect_info")),
      };
    });
    const { outcome, offer } = await whip.open({ ...request, mayMove: placement !== undefined });
    noteForLog(c, subjectOf(outcome));
    if (log.isLevelEnabled("debug")) {
      const { agreed = [], ...offered } = offer ?? {};
      const came = outcome.outcome === "opened" ? { answered: agreed } : codeOf(outcome);
      log.debug({ requestId: c.get("requestId"), ...subjectOf(outcome), offered, ...came }, "WHIP offer");
    }
    if (placement !== undefined && outcome.outcome === "denied" && isOfNode(outcome)) {
      let elsewhere: Response | undefined;
      try {
        elsewhere = await placement(c);
      } finally {
        const asked = { request: "publish", protocol: "whip", name: request.streamName, address } as const;
        if (elsewhere === undefined) refusals.note({ ...outcome, ...asked, reason: outcome.cause });
      }
      if (elsewhere !== undefined) return elsewhere;
    }
    const opened = opening(outcome);
    // The client has disconnected: the publish was accepted and ends (W12a), so that its name is free
    // immediately.
    if (hasLeft(c)) whip.end(opened.session);
    c.header("location", `${baseUrlOf(c, { http: config.http })}${WHIP_PATH}/${opened.session}`);
    c.header("etag", opened.etag);
    setLinks(c, opened.links);
    return c.body(opened.answer, 201, { "content-type": "application/sdp" });
  });

  return routes;
}

function subjectOf(outcome: WhipOutcome): LoggedSubject {
  if (outcome.outcome === "opened") {
    const { organisation, stream, clientId } = outcome;
    return { organisation, stream, clientId };
  }
  if (outcome.outcome !== "denied") return {};
  const { organisation, stream, clientId } = outcome.about ?? {};
  return {
    ...(organisation === undefined ? {} : { organisation }),
    ...(stream === undefined ? {} : { stream }),
    ...(clientId === undefined ? {} : { clientId }),
  };
}

/** Why an offer was refused, by its stable code. */
function codeOf(outcome: Exclude<WhipOutcome, { outcome: "opened" }>): object {
  if (outcome.outcome === "refused") return { refused: outcome.code, detail: outcome.detail };
  return { refused: outcome.outcome === "denied" ? outcome.cause : outcome.outcome };
}

function opening(outcome: WhipOutcome): Extract<WhipOutcome, { outcome: "opened" }> {
  switch (outcome.outcome) {
    case "opened":
      return outcome;
    case "refused":
      throw new WhipProblem(outcome.code, outcome.status, "Offer refused", outcome.detail);
    case "bad_stream_url":
      throw WhipProblem.fault("bad_stream_url", "It must be rtmp://<an allowed host>/live");
    case "limited":
      throw WhipProblem.limited(outcome);
    case "denied":
      throw WhipProblem.denied(outcome);
  }
}

/** One header line per server: OBS splits a combined one at its commas. A `Headers` object would combine them, so they
 *  are set on Node's own response where there is one. */
function setLinks(c: Context, links: readonly string[]): void {
  const outgoing = outgoingOf(c);
  if (outgoing !== undefined && links.length > 0) outgoing.setHeader("link", [...links]);
  else for (const link of links) c.header("link", link, { append: true });
}

/** application/sdp, text/plain (deployed clients) or none; parameters are ignored (P3). */
function isSdp(contentType: string | undefined): boolean {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return type === "" || type === "application/sdp" || type === "text/plain";
}

/** Parameters by name, the first of each, percent-decoded once: split at `&` and at any unescaped `?`, `+` left alone
 *  (P1). */
function readQuery(url: string): ReadonlyMap<string, Buffer> {
  const query = new Map<string, Buffer>();
  const start = url.indexOf("?");
  if (start === -1) return query;
  for (const part of url
    .slice(start + 1)
    .replace(/#.*$/s, "")
    .split(/[&?]/)) {
    const [name = "", ...value] = part.split("=");
    if (name !== "" && !query.has(name)) query.set(name, decodePercent(value.join("=")));
  }
  return query;
}

/** Percent-decoding to bytes: the customer must receive exactly what was sent, UTF-8 or not. */
function decodePercent(text: string): Buffer {
  const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  // Unescaped characters beyond ASCII are encoded as UTF-8; after unescaping every character is one byte.
  return /^[\x20-\x7e]*$/.test(text) ? Buffer.from(decoded, "latin1") : Buffer.from(percentDecoded(text) ?? text);
}

/** Where to publish: from the query, or from a web token issued by us; both must agree (T6). */
function targetOf(
  query: ReadonlyMap<string, Buffer>,
  claims: TokenClaims | null,
): { readonly streamName: Uint8Array; readonly streamUrl: string } {
  const name = query.get("stream_name");
  const url = query.get("stream_url")?.toString();
  if (claims !== null) {
    const isOther = name !== undefined && name.toString() !== claims.streamname;
    if (isOther || (url !== undefined && !isSameIngestUrl(url, claims.ingesturl))) {
      throw WhipProblem.fault("token_mismatch", "The token is for another stream");
    }
    if (!opensStreamsOf(claims, claims.streamname)) {
      throw WhipProblem.fault("token_mismatch", "The token belongs to a different organisation than the stream");
    }
    return { streamName: Buffer.from(claims.streamname), streamUrl: claims.ingesturl };
  }
  if (name === undefined || name.length === 0) throw WhipProblem.fault("parameter_required", "stream_name is required");
  if (url === undefined || url === "") throw WhipProblem.fault("parameter_required", "stream_url is required");
  return { streamName: name, streamUrl: url };
}

/** The claims of a web token issued by us; any other bearer is ignored: clients send "Bearer undefined". Throws
 *  `BadToken`. */
async function claimsOf(authorization: string | undefined, tokens: Tokens): Promise<TokenClaims | null> {
  const bearer = bearerOf(authorization);
  return bearer === null || !tokens.isOurs(bearer) ? null : await tokens.verify(bearer);
}

/** Deployed clients send what their user typed; null for the default bitrate. */
function audioBitrateOf(given: Buffer | undefined): number | null {
  const text = given?.toString().trim() ?? "";
  const bitrate = Number(text);
  if (text === "" || Number.isNaN(bitrate)) return null;
  return audioBitrateWithin(bitrate);
}

function connectInfoOf(given: Buffer | undefined): WhipRequest["connectInfo"] {
  if (given === undefined) return null;
  const info = readConnectInfo(given);
  if (info !== null) return info;
  throw WhipProblem.fault(
    "bad_parameter",
    `connect_info must be a JSON object of at most ${CONNECT_INFO_LIMIT_BYTES} bytes`,
  );
}
