// The rate limit of every request that carries an API key or a session (M13), and the headers that report the caller's remaining
// quota.
import { setTimeout as wait } from "node:timers/promises";
import type { Context, MiddlewareHandler } from "hono";
import { BadApiKey, TooManyRequests } from "../../errors.ts";
import { steadyClock } from "../../in-time.ts";
import { networkOf } from "../../network.ts";
import { hashOfKey } from "../../organisation/api-keys.ts";
import { createRefusalPace, createRequestRate, type RequestRate } from "../../organisation/request-rate.ts";
import { apiKeyOf, type ClientAddress, passedOn, sessionIdOf } from "./request.ts";

interface Limits {
  readonly limits: { readonly apiRequestsPerSecond: number; readonly apiBurst: number };
  readonly clock: { now(): number };
}

/** `perSecond` 0: no limit. A refusal is 429 with Retry-After; headers after draft-ietf-httpapi-ratelimit-headers-06. Whoever
 *  tries keys and sessions that are not valid is refused at the same pace, by network. */
export function rateLimit(deps: Limits & { readonly clientAddress: ClientAddress }): MiddlewareHandler {
  const { apiRequestsPerSecond: perSecond, apiBurst: burst } = deps.limits;
  if (perSecond === 0) return (_, next) => next();
  const rate = createRequestRate({ perSecond, burst }, deps.clock);
  const invalid = createRefusalPace(steadyClock(deps.clock));
  return async (c, next) => {
    const secret = apiKeyOf(c) ?? sessionIdOf(c);
    if (secret === null || passedOn(c) !== null) return await next(); // counted on the node that received it
    // By its hash: no key stays in memory longer than its request.
    await count(c, rate, hashOfKey(secret));
    await next();
    if (c.error instanceof BadApiKey) await late(c, invalid.take(networkOf(deps.clientAddress(c))));
  };
}

/** Counts requests of a person, all of whose sessions share one limit. */
export function personLimit(deps: Limits): (c: Context, personId: string) => Promise<void> {
  const { apiRequestsPerSecond: perSecond, apiBurst: burst } = deps.limits;
  if (perSecond === 0) return async () => {};
  const rate = createRequestRate({ perSecond, burst }, deps.clock);
  return async (c, personId) => {
    if (passedOn(c) === null) await count(c, rate, personId);
  };
}

async function count(c: Context, rate: RequestRate, caller: string): Promise<void> {
  const { allowed, limit, remaining, resetS, retryAfterS, answerAfterMs } = rate.take(caller);
  c.header("ratelimit-limit", String(limit));
  c.header("ratelimit-remaining", String(remaining));
  c.header("ratelimit-reset", String(resetS));
  if (allowed) return;
  await late(c, answerAfterMs);
  throw new TooManyRequests(retryAfterS);
}

/** Ends early when the caller has gone: what waits is bounded by its connections. */
async function late(c: Context, ms: number): Promise<void> {
  if (ms > 0) await wait(ms, undefined, { signal: c.req.raw.signal }).catch(() => {});
}
