// What every resource reads from a request beside query and body (schema.ts): the API key, the session, the
// address we were called at, the address of the client.
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

/** A larger body than `BODY_LIMIT_BYTES` is refused with `BodyTooLarge`. A body whose length was told is not touched here:
 *  Node reads no byte more, and a body that nobody wrapped as a stream is read far more cheaply. */
export function boundedBody(): MiddlewareHandler {
  const refuse = (): never => {
    throw new BodyTooLarge(`over ${BODY_LIMIT_BYTES} bytes`);
  };
  const counted = bodyLimit({ maxSize: BODY_LIMIT_BYTES, onError: refuse });
  return (c, next) => {
    const told = c.req.header("content-length");
    if (told === undefined || c.req.header("transfer-encoding") !== undefined) return counted(c, next);
    return Number(told) > BODY_LIMIT_BYTES ? refuse() : next();
  };
}

/** The response of Node itself; there is none when the application is called without a server. */
export function outgoingOf(c: Context): ServerResponse | undefined {
  return (c.env as { readonly outgoing?: ServerResponse } | undefined)?.outgoing;
}

/** Whether whoever asked has closed the connection, or sent nothing for so long that we did. */
export function hasLeft(c: Context): boolean {
  const incoming = (c.env as { readonly incoming?: IncomingMessage } | undefined)?.incoming;
  // Deno knows it of a request that was cut off, but not of its response.
  const isCutOff = incoming?.destroyed === true && !incoming.complete;
  return isCutOff || outgoingOf(c)?.destroyed === true;
}

/** Reads the API key once for everything that asks `apiKeyOf`. `headers`: those beside x-service-apikey (M3). */
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

/** The session of a person. `__Host-`: browsers take it from this host alone, over TLS, for every path (RFC 6265bis
 *  4.1.3.2); they count loopback as secure. */
export const SESSION_COOKIE = "__Host-headgate";

/** What the request shows of its caller. */
export function credentialsOf(c: Context): Credentials {
  return {
    apiKey: apiKeyOf(c),
    sessionId: sessionIdOf(c),
    pageToken: c.req.header("x-csrf-token") ?? null,
    changes: c.req.method !== "GET" && c.req.method !== "HEAD",
    foreignPage: isForeignPage(c),
  };
}

/** Id of the person's session, or null. */
export function sessionIdOf(c: Context): string | null {
  return getCookie(c, SESSION_COOKIE) ?? null;
}

/** Whether a browser says that another origin's page made the request. Programs say nothing and are no pages. */
export function isForeignPage(c: Context): boolean {
  const site = c.req.header("sec-fetch-site");
  if (site !== undefined) return site !== "same-origin" && site !== "none";
  const origin = c.req.header("origin");
  if (origin === undefined) return false;
  // The host that the browser asked for; the scheme may have been changed by a proxy.
  return !URL.canParse(origin) || new URL(origin).host !== new URL(c.req.url).host;
}

/** Scheme, host and port that the caller reaches us at, without a trailing slash. */
export function baseUrlOf(c: Context, config: Pick<Config, "http">): string {
  return config.http.publicUrl ?? new URL(c.req.url).origin;
}

/** A request that another node passed on: what it knows of its client. */
export interface PassedOn {
  /** IP address. */
  readonly client: string;
}

/** What another node says of the client; null for a request that came here itself. */
export function passedOn(c: Context): PassedOn | null {
  return (c.env as { readonly passedOn?: PassedOn } | undefined)?.passedOn ?? null;
}

/** IP address of the peer; an IPv4 peer of a dual-stack port is told as IPv4. */
function peerAddressOf(c: Context): string {
  // Requests that came over no socket have no peer.
  const address = c.env?.incoming === undefined ? undefined : getConnInfo(c).remote.address;
  return withoutMapping(address ?? "");
}

/** Tells the IP address of whoever made a request (W5). */
export type ClientAddress = (c: Context) => string;

/** `trustedProxies`: networks whose word about the client counts, `10.0.0.0/8` or `2001:db8::1`. */
export function clientAddresses(trustedProxies: readonly string[]): ClientAddress {
  const isTrusted = networkList(trustedProxies);
  return (c) => passedOn(c)?.client ?? clientAddressOf(c, isTrusted);
}

/** IP address of the client (W5): the peer, or behind trusted proxies the last hop that is none of them. What a client
 *  writes into X-Forwarded-For itself stands before that and is not believed. */
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
