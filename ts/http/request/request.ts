// What routes read from a request besides query and body (schema.ts): the API key, the session, the base URL of the
// request, the address of the client.
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { getConnInfo } from "@hono/node-server/conninfo";
import type { Context, MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { getCookie } from "hono/cookie";
import { apiKeyIn } from "../../api-key-headers.ts";
import type { Config } from "../../config.ts";
import { BodyTooLarge } from "../../errors.ts";
import { networkList, withoutMapping } from "../../network.ts";
import type { Credentials } from "../../organisation/callers.ts";

/** Largest body that is read, bytes. */
export const BODY_LIMIT_BYTES = 65_536;

/** The one request with a longer body: a logo of 100 kB in base64 (organisation/logo/logo-image.ts). */
const LOGO_PATH = "/organisation/logo";
const LOGO_BODY_LIMIT_BYTES = 140_000;

/** Rejects a body larger than the limit of its path with `BodyTooLarge`. A body with a declared length is not touched
 *  here: Node reads no more than that, and a body not wrapped as a stream is read at far less cost. Nor is a GET or HEAD,
 *  whose body nothing reads: looking whether there is one costs more than all other middleware. */
export function boundedBody(): MiddlewareHandler {
  const [usual, ofLogo] = [boundedTo(BODY_LIMIT_BYTES), boundedTo(LOGO_BODY_LIMIT_BYTES)];
  return (c, next) => (c.req.path === LOGO_PATH ? ofLogo : usual)(c, next);
}

function boundedTo(limitBytes: number): MiddlewareHandler {
  const refuse = (): never => {
    throw new BodyTooLarge(`over ${limitBytes} bytes`);
  };
  const counted = bodyLimit({ maxSize: limitBytes, onError: refuse });
  return (c, next) => {
    const announced = c.req.header("content-length");
    if (announced === undefined || c.req.header("transfer-encoding") !== undefined)
      return c.req.method === "GET" || c.req.method === "HEAD" ? next() : counted(c, next);
    return Number(announced) > limitBytes ? refuse() : next();
  };
}

/** Node's own response object; undefined when the application is called without a server. */
export function outgoingOf(c: Context): ServerResponse | undefined {
  return (c.env as { readonly outgoing?: ServerResponse } | undefined)?.outgoing;
}

/** Whether the client has closed the connection, or sent nothing for so long that we closed it. */
export function hasLeft(c: Context): boolean {
  const incoming = (c.env as { readonly incoming?: IncomingMessage } | undefined)?.incoming;
  // Deno reports a request that was cut off, but not that its response was.
  const isCutOff = incoming?.destroyed === true && !incoming.complete;
  return isCutOff || outgoingOf(c)?.destroyed === true;
}

/** Reads the API key once for all callers of `apiKeyOf`. `headers`: header names accepted in addition to
 *  x-service-apikey (M3). */
export function readApiKey(headers: readonly string[]): MiddlewareHandler {
  return (c, next) => {
    c.set(
      "apiKey",
      apiKeyIn((name) => c.req.header(name), headers),
    );
    return next();
  };
}

/** The API key as it was sent, or null. */
export function apiKeyOf(c: Context): string | null {
  return c.get("apiKey");
}

/** The session cookie of a person. `__Host-`: browsers accept it only from this host, over TLS, for every path (RFC
 *  6265bis 4.1.3.2); they treat loopback as secure. */
export const SESSION_COOKIE = "__Host-headgate";

/** The credentials in the request. */
export function credentialsOf(c: Context): Credentials {
  return {
    apiKey: apiKeyOf(c),
    sessionId: sessionIdOf(c),
    pageToken: c.req.header("x-csrf-token") ?? null,
    changes: c.req.method !== "GET" && c.req.method !== "HEAD",
    otherSitePage: isOtherSitePage(c),
  };
}

/** Id of the person's session, or null. */
export function sessionIdOf(c: Context): string | null {
  return getCookie(c, SESSION_COOKIE) ?? null;
}

/** Whether a browser reports that another origin's page made the request. Other programs send no such header. */
export function isOtherSitePage(c: Context): boolean {
  const site = c.req.header("sec-fetch-site");
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const origin = c.req.header("origin");
  if (origin === undefined) return false;
  // The host that the browser requested; a proxy may have changed the scheme.
  return !URL.canParse(origin) || new URL(origin).host !== new URL(c.req.url).host;
}

/** Scheme, host and port at which the caller reaches us, without a trailing slash. */
export function baseUrlOf(c: Context, config: Pick<Config, "http">): string {
  return config.http.publicUrl ?? new URL(c.req.url).origin;
}

/** A request that another node passed on: what that node knows of it and of its client. */
export interface PassedOn {
  /** IP address. */
  readonly client: string;
  /** Its x-request-id in the response of that node; null: that node does not report it. */
  readonly requestId: string | null;
}

/** What another node reports of the request; null for one that came here directly. */
export function passedOn(c: Context): PassedOn | null {
  return (c.env as { readonly passedOn?: PassedOn } | undefined)?.passedOn ?? null;
}

/** IP address of the peer; an IPv4 peer of a dual-stack port is given as IPv4. */
function peerAddressOf(c: Context): string {
  // Requests that did not come over a socket have no peer.
  const address = c.env?.incoming === undefined ? undefined : getConnInfo(c).remote.address;
  return withoutMapping(address ?? "");
}

/** Returns the IP address of the client of a request (W5). */
export type ClientAddress = (c: Context) => string;

/** `trustedProxies`: addresses and networks whose X-Forwarded-For is trusted, `10.0.0.0/8` or `2001:db8::1`. */
export function clientAddresses(trustedProxies: readonly string[]): ClientAddress {
  const isTrusted = networkList(trustedProxies);
  return (c) => passedOn(c)?.client ?? clientAddressOf(c, isTrusted);
}

/** IP address of the client (W5): the peer, or behind trusted proxies the last hop that is not one of them. Anything a
 *  client writes into X-Forwarded-For itself precedes that hop and is ignored. */
function clientAddressOf(c: Context, isTrusted: (address: string) => boolean): string {
  let client = peerAddressOf(c);
  const hops = (c.req.header("x-forwarded-for") ?? "").split(",").reverse();
  for (const hop of hops) {
    if (!isTrusted(client)) return client;
    const address = withoutMapping(withoutPort(hop.trim()));
    if (isIP(address) === 0) return client;
    client = address;
  }
  return client;
}

/** `1.2.3.4:5`, `[2001:db8::1]:5` and `[2001:db8::1]` → the address. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^([\d.]+):\d+$/, "$1");
}
