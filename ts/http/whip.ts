// /p/webrtc: the WHIP endpoint and its sessions (RFC 9725; P1–P13). CORS is written by hand: browsers publish from any
// page, and a middleware would answer OPTIONS without Accept-Post.
import { Hono } from "hono";
import type { Config } from "../config.ts";
import { BadToken } from "../errors.ts";
import { WhipProblem } from "../problems.ts";
import type { Whip, WhipOutcome } from "../publish/whip.ts";
import { baseUrlOf, peerAddressOf } from "../request.ts";
import type { TokenBroadcasts } from "../token/broadcasts.ts";
import type { TokenClaims, Tokens } from "../token/tokens.ts";

export const WHIP_PATH = "/p/webrtc";

const METHODS = "POST, DELETE, GET, OPTIONS";
const ALLOW_HEADERS = "Authorization, Content-Type, If-Match, ETag";
const EXPOSE_HEADERS =
  "Location, ETag, Link, Accept-Post, Accept-Patch, Retry-After, Access-Control-Allow-Methods, x-request-id";
/** How long a browser may remember a preflight, seconds. */
const PREFLIGHT_AGE_S = 86_400;
/** AAC bitrate a client may ask for, and the one without asking (P11), bit/s. */
const AUDIO_BITRATE = { least: 32_000, most: 320_000, standard: 128_000 };

export interface WhipDeps {
  readonly config: Pick<Config, "http">;
  readonly tokens: Tokens;
  /** Told which token opened what, so that its revocation ends it (T7). */
  readonly tokenBroadcasts?: TokenBroadcasts;
  readonly whip: Whip;
  readonly version: string;
}

export function whipRoutes({ config, tokens, tokenBroadcasts, whip, version }: WhipDeps): Hono {
  const routes = new Hono();
  const session = `${WHIP_PATH}/:session`;

  routes.use(`${WHIP_PATH}/*`, async (c, next) => {
    await next();
    const { headers } = c.res;
    headers.set("access-control-allow-origin", "*");
    headers.set("access-control-expose-headers", EXPOSE_HEADERS);
    // The session's URL is a capability, the endpoint's may hold a passcode.
    headers.set("cache-control", "no-store");
    headers.set("referrer-policy", "no-referrer");
  });

  routes.get(`${WHIP_PATH}/status.json`, (c) => c.json({ server_version: version }));
  for (const path of [WHIP_PATH, session]) {
    routes.options(path, (c) => {
      c.header("accept-post", "application/sdp");
      c.header("access-control-allow-methods", METHODS);
      c.header("access-control-allow-headers", ALLOW_HEADERS);
      c.header("access-control-max-age", String(PREFLIGHT_AGE_S));
      return c.body(null, 200);
    });
    // RFC 9725 4.1: no content, and no error.
    routes.get(path, (c) => c.body(null, 204));
  }

  routes.post(WHIP_PATH, async (c) => {
    if (!isSdp(c.req.header("content-type"))) {
      throw WhipProblem.fault("unsupported_media_type", "An offer is sent as application/sdp");
    }
    const offer = await c.req.text();
    const query = readQuery(c.req.url);
    const claims = await claimsOf(c.req.header("authorization"), tokens);
    const opened = opening(
      await whip.open({
        ...targetOf(query, claims),
        offer,
        address: peerAddressOf(c),
        requestHost: new URL(c.req.url).hostname,
        stereo: query.get("stereo")?.toString() === "1",
        audioBitrate: audioBitrateOf(query.get("audio_bitrate")),
      }),
    );
    if (claims !== null) tokenBroadcasts?.started(claims, opened.clientId);
    c.header("location", `${baseUrlOf(c, { http: config.http })}${WHIP_PATH}/${opened.session}`);
    c.header("etag", opened.etag);
    return c.body(opened.answer, 201, { "content-type": "application/sdp" });
  });

  routes.delete(session, (c) => {
    if (!whip.end(c.req.param("session"))) throw WhipProblem.fault("unknown_session", "It has ended or never was");
    return c.body(null, 200);
  });

  return routes;
}

function opening(outcome: WhipOutcome): Extract<WhipOutcome, { outcome: "opened" }> {
  switch (outcome.outcome) {
    case "opened":
      return outcome;
    case "refused":
      throw new WhipProblem(outcome.code, outcome.status, "Offer refused", outcome.detail);
    case "bad_stream_url":
      throw WhipProblem.fault("bad_stream_url", "It must be rtmp://<an allowed host>/live");
    case "denied":
      throw WhipProblem.denied(outcome.cause, outcome.description);
  }
}

/** application/sdp, text/plain (deployed clients) or none; parameters are tolerated (P3). */
function isSdp(contentType: string | undefined): boolean {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return type === "" || type === "application/sdp" || type === "text/plain";
}

/** Parameters by name, the first of each, decoded once: split at `&` and at any unescaped `?`, `+` left alone (P1). */
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

/** Percent-decoding to bytes: what the customer is told must be what was sent, UTF-8 or not. */
function decodePercent(text: string): Buffer {
  const decoded = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  // What is not escaped beyond ASCII goes as UTF-8; after unescaping every character is one byte.
  return /^[\x20-\x7e]*$/.test(text) ? Buffer.from(decoded, "latin1") : Buffer.from(decodeURIComponentOr(text));
}

function decodeURIComponentOr(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Where to publish: from the query, or from a web token of ours; both must agree (T6). */
function targetOf(
  query: ReadonlyMap<string, Buffer>,
  claims: TokenClaims | null,
): { readonly streamName: Uint8Array; readonly streamUrl: string } {
  const name = query.get("stream_name");
  const url = query.get("stream_url")?.toString();
  if (claims !== null) {
    const differs = (given: string | undefined, claimed: string) => given !== undefined && given !== claimed;
    if (differs(name?.toString(), claims.streamname) || differs(url, claims.ingesturl)) {
      throw WhipProblem.fault("token_mismatch", "The token is for another stream");
    }
    return { streamName: Buffer.from(claims.streamname), streamUrl: claims.ingesturl };
  }
  if (name === undefined || name.length === 0) throw WhipProblem.fault("parameter_required", "stream_name is required");
  if (url === undefined || url === "") throw WhipProblem.fault("parameter_required", "stream_url is required");
  return { streamName: name, streamUrl: url };
}

/** The claims of a web token of ours; a bearer that is none of ours is ignored: clients send "Bearer undefined". */
async function claimsOf(authorization: string | undefined, tokens: Tokens): Promise<TokenClaims | null> {
  const bearer = /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (bearer === undefined || !tokens.isOurs(bearer)) return null;
  try {
    return await tokens.verify(bearer);
  } catch (error) {
    if (error instanceof BadToken) throw WhipProblem.fault("bad_token", error.fault);
    throw error;
  }
}

function audioBitrateOf(given: Buffer | undefined): number {
  if (given === undefined) return AUDIO_BITRATE.standard;
  const bitrate = /^\d{1,7}$/.test(given.toString()) ? Number(given) : Number.NaN;
  if (!(bitrate >= AUDIO_BITRATE.least && bitrate <= AUDIO_BITRATE.most)) {
    const range = `${AUDIO_BITRATE.least} to ${AUDIO_BITRATE.most}`;
    throw WhipProblem.fault("bad_parameter", `audio_bitrate must be ${range} bit/s`);
  }
  return bitrate;
}
