// What is done for every request, whatever its route: a request id, security headers, one log line, one observation in
// the metrics.
import { randomUUID } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import { matchedRoutes, routePath } from "hono/route";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import type { Metrics } from "../../metrics.ts";
import { keyIdIn } from "../../organisation/key-text.ts";
import { traceOf } from "../../tracing/trace.ts";
import type { Env } from "../openapi.ts";
import { notedForLog } from "./caller.ts";
import { apiKeyOf, type ClientAddress, passedOn } from "./request.ts";

/** How long browsers remember to use only HTTPS here, seconds. */
const HTTPS_ONLY_S = 31_536_000;
/** For responses that are not pages: if a browser displays one anyway, nothing in it runs. */
const NO_PAGE_POLICY = "default-src 'none'; frame-ancestors 'none'";
/** Paths that other sites' pages may read (T5). */
const PUBLIC_AREAS = ["/webcaster/verify", "/.well-known/"];
/** The route sets this itself; here it covers what is refused before the route, such as a body that is too large. */
const READ_BY_ANY_PAGE = "/webcaster/verify";
/** Sets its own headers: encoders read its responses, and browsers on any page. */
const WHIP_AREA = "/p/webrtc";

/** Requests with these methods may change something: their lines are in every log. */
const CHANGES: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH", "DELETE"]);

export function envelope(deps: {
  readonly config: Pick<Config, "http">;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clientAddress: ClientAddress;
}): MiddlewareHandler<Env> {
  const { log, metrics, clientAddress } = deps;
  const isHttpsOnly = deps.config.http.publicUrl?.startsWith("https:") === true;

  return async (c, next) => {
    const startedAt = performance.now(); // a duration, not the time of day
    const requestId = passedOn(c)?.requestId ?? randomUUID();
    c.set("requestId", requestId);
    const trace = traceOf(c.req.header("traceparent"), c.req.header("tracestate"));
    c.set("trace", trace);
    await next();
    const { headers, status } = c.res;
    headers.set("x-api-version", "1");
    headers.set("x-request-id", requestId);
    if (headers.get("content-type") === "application/json") {
      headers.set("content-type", "application/json; charset=utf-8"); // M2
    }
    guard(c, headers);
    if (isHttpsOnly) headers.set("strict-transport-security", `max-age=${HTTPS_ONLY_S}`);

    const { method } = c.req;
    const route = routeOf(c);
    const tookMs = performance.now() - startedAt;
    metrics.observeRequest({ method, route, status, tookMs });
    const level = CHANGES.has(method) || status >= 500 ? "info" : "debug";
    if (!log.isLevelEnabled(level)) return;
    const address = clientAddress(c);
    const who = callerOf(c);
    const about = { requestId, trace_id: trace.traceId, ...who };
    log[level]({ ...about, method, route, status, address, tookMs: Math.round(tookMs) }, "request answered");
  };
}

/** The caller for the log line; for an invalid key, the id contained in it. */
function callerOf(c: Context): object {
  const noted = notedForLog(c);
  if (noted.caller !== undefined) return noted;
  const shown = keyIdIn(apiKeyOf(c) ?? "");
  return { caller: "none", ...noted, ...(shown === null ? {} : { shownKey: shown }) };
}

/** The route's pattern: paths contain session ids, queries contain secrets. A path that is a route itself takes
 *  precedence over patterns that it also matches: /p/webrtc/status.json is not a session. */
function routeOf(c: Context): string {
  const { path } = c.req;
  return matchedRoutes(c).some((route) => route.path === path) ? path : routePath(c, -1);
}

/** A header that the route has set itself is kept. */
function guard(c: Context, headers: Headers): void {
  const fallback = (name: string, value: string) => {
    if (!headers.has(name)) headers.set(name, value);
  };
  if (c.req.path.startsWith(WHIP_AREA)) return;
  const isPublic = PUBLIC_AREAS.some((area) => c.req.path.startsWith(area));
  if (c.req.path === READ_BY_ANY_PAGE) fallback("access-control-allow-origin", "*");
  fallback("x-content-type-options", "nosniff");
  fallback("referrer-policy", "no-referrer");
  fallback("content-security-policy", NO_PAGE_POLICY);
  fallback("cross-origin-resource-policy", isPublic ? "cross-origin" : "same-origin");
  fallback("cache-control", "no-store");
}
