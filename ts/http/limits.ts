// Limits of a request: how large its body is, and how often one API key may call (M13) with the headers that tell a
// caller where it stands.
import type { MiddlewareHandler } from "hono";
import { bodyLimit } from "hono/body-limit";
import { BodyTooLarge, TooManyRequests } from "../errors.ts";
import { hashOfKey } from "../organisation/api-keys.ts";
import { createRequestRate } from "../organisation/request-rate.ts";
import { apiKeyOf, BODY_LIMIT_BYTES } from "../request.ts";

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
    if (key === null) return await next();
    // By its hash: no key stays in memory longer than its request.
    const { allowed, limit, remaining, resetS, retryAfterS } = rate.take(hashOfKey(key));
    c.header("ratelimit-limit", String(limit));
    c.header("ratelimit-remaining", String(remaining));
    c.header("ratelimit-reset", String(resetS));
    if (!allowed) throw new TooManyRequests(retryAfterS);
    await next();
  };
}

/** A larger body than `BODY_LIMIT_BYTES` is refused with `BodyTooLarge`. A body whose length was told is not touched here:
 *  Node reads no byte more, and a body that nobody wrapped as a stream is read at a third of the cost. */
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
