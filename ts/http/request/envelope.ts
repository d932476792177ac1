// What every request gets around it, whatever its route: an id, the headers that keep browsers careful, one line in the
// log, one observation in the metrics.
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
import { apiKeyOf, type ClientAddress } from "./request.ts";

/** How long browsers remember that we are reached by HTTPS only, seconds. */
const HTTPS_ONLY_S = 31_536_000;
/** For answers that are no page: if a browser shows one all the same, nothing in it runs. */
const NO_PAGE_POLICY = "default-src 'none'; frame-ancestors 'none'";
/** Areas that other sites' pages may read (T5). */
const PUBLIC_AREAS = ["/webcaster/verify", "/.well-known/"];
/** The route says so itself; here what is refused before it is reached, such as a body that is too large. */
const READ_BY_ANY_PAGE = "/webcaster/verify";
/** Has headers of its own: encoders read them, and browsers of any page. */
const WHIP_AREA = "/p/webrtc";

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
    const requestId = randomUUID();
    c.set("requestId", requestId);
    const trace = traceOf(c.req.header("traceparent"), c.req.header("tracestate"));
    c.set("trace", trace);
    await next();
    const { headers, status } = c.res;
    headers.set("x-api-version", "1"); // §7
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
    if (!log.isLevelEnabled("info")) return;
    const address = clientAddress(c);
    const who = callerOf(c);
    const about = { requestId, trace_id: trace.traceId, ...who };
    log.info({ ...about, method, route, status, address, tookMs: Math.round(tookMs) }, "request answered");
  };
}

/** Whom the line names; of a key that opened nothing the id that is in it. */
function callerOf(c: Context): object {
  const noted = notedForLog(c);
  if (noted.caller !== undefined) return noted;
  const shown = keyIdIn(apiKeyOf(c) ?? "");
  return { caller: "none", ...noted, ...(shown === null ? {} : { shownKey: shown }) };
}

/** The route's pattern: paths hold session ids, queries hold secrets. A path that is a route itself comes before the
 *  patterns that it matches, too: /p/webrtc/status.json is no session. */
function routeOf(c: Context): string {
  const { path } = c.req;
  return matchedRoutes(c).some((route) => route.path === path) ? path : routePath(c, -1);
}

/** A route that sets one of these knows better. */
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
