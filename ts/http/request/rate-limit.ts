// The rate limit of every request that carries an API key (M13), and the headers that report the caller's remaining
// quota.
import type { MiddlewareHandler } from "hono";
import { TooManyRequests } from "../../errors.ts";
import { hashOfKey } from "../../organisation/api-keys.ts";
import { createRequestRate } from "../../organisation/request-rate.ts";
import { apiKeyOf, passedOn } from "./request.ts";

/** `perSecond` 0: no limit. A refusal is 429 with Retry-After; headers after draft-ietf-httpapi-ratelimit-headers-06. */
export function rateLimit(deps: {
  readonly limits: { readonly apiRequestsPerSecond: number; readonly apiBurst: number };
  readonly clock: { now(): number };
}): MiddlewareHandler {
  const { apiRequestsPerSecond: perSecond, apiBurst: burst } = deps.limits;
  if (perSecond === 0) return (_, next) => next();
  const rate = createRequestRate({ perSecond, burst }, deps.clock);
  return async (c, next) => {
    const key = apiKeyOf(c);
    if (key === null || passedOn(c) !== null) return await next(); // counted on the node that received it
    // By its hash: no key stays in memory longer than its request.
    const { allowed, limit, remaining, resetS, retryAfterS } = rate.take(hashOfKey(key));
    c.header("ratelimit-limit", String(limit));
    c.header("ratelimit-remaining", String(remaining));
    c.header("ratelimit-reset", String(resetS));
    if (!allowed) throw new TooManyRequests(retryAfterS);
    await next();
  };
}
