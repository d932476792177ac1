// Rate limit of callers (M13): a bucket per API key that refills evenly and holds a burst. The caller supplies the
// time. (rate-limiter-flexible counts in fixed windows: neither of its limiters keeps 20/s with a burst of 60 exactly.)
import { steadyClock } from "../in-time.ts";

/** With more buckets than this the full ones are removed, since a full bucket equals a new one. A bucket exists only
 *  while it refills, so the number is bounded by the requests of a few seconds, whatever keys they carry. */
const SWEEP_AT = 10_000;

export interface RateVerdict {
  readonly allowed: boolean;
  /** Capacity of the bucket, and requests left. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the bucket is full again, and until one more request is allowed (0: immediately), rounded
   *  up. */
  readonly resetS: number;
  readonly retryAfterS: number;
}

export interface RequestRate {
  /** Counts one request of `caller`. */
  take(caller: string): RateVerdict;
}

/** `perSecond`: refill, more than 0. `burst`: capacity of the bucket. */
export function createRequestRate(
  limits: { readonly perSecond: number; readonly burst: number },
  wall: { now(): number },
): RequestRate {
  const clock = steadyClock(wall);
  const stepMs = 1000 / limits.perSecond;
  const burst = Math.max(1, limits.burst);
  /** Caller → when its bucket is full again, ms on the steady clock: one that is set back keeps nobody waiting. */
  const fullAt = new Map<string, number>();

  function sweep(now: number): void {
    for (const [caller, at] of fullAt) if (at <= now) fullAt.delete(caller);
  }

  return {
    take(caller) {
      const now = clock.now();
      const from = Math.max(fullAt.get(caller) ?? now, now);
      const next = from + stepMs;
      const allowed = next - now <= burst * stepMs + 0.001;
      if (fullAt.size >= SWEEP_AT) sweep(now);
      fullAt.set(caller, allowed ? next : from);
      const missing = ((allowed ? next : from) - now) / stepMs;
      return {
        allowed,
        limit: burst,
        remaining: Math.max(0, Math.floor(burst - missing + 0.001)),
        resetS: Math.ceil((missing * stepMs) / 1000),
        retryAfterS: allowed ? 0 : Math.max(1, Math.ceil((next - now - burst * stepMs) / 1000)),
      };
    },
  };
}
