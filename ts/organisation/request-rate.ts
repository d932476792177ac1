// Rate limit of callers (M13): a bucket per API key that refills evenly and holds a burst. The caller supplies the
// time. (rate-limiter-flexible counts in fixed windows: neither of its limiters keeps 20/s with a burst of 60 exactly.)
import { steadyClock } from "../in-time.ts";

/** With more buckets than this the full ones are removed, since a full bucket equals a new one. A bucket exists only
 *  while it refills, so the number is bounded by the requests of a few seconds, whatever keys they carry. */
const SWEEP_AT = 10_000;
/** A caller that asks on without waiting gets its refusals at this pace, so that refusing costs others nothing: the first
 *  ones at once, each further one later, and none later than `REFUSAL_LATE_MS`. That is the pace of up to 200 connections
 *  of a caller; more get a tenth of their number a second. Closing them instead would cost a TLS handshake each. */
const REFUSAL_STEP_MS = 50;
const REFUSALS_AT_ONCE = 10;
const REFUSAL_LATE_MS = 10_000;

export interface RateVerdict {
  readonly allowed: boolean;
  /** Capacity of the bucket, and requests left. */
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until the bucket is full again, and until one more request is allowed (0: immediately), rounded
   *  up. */
  readonly resetS: number;
  readonly retryAfterS: number;
  /** After how long a refusal is to be answered, ms. */
  readonly answerAfterMs: number;
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
  const pace = createRefusalPace(clock);

  return {
    take(caller) {
      const now = clock.now();
      const from = Math.max(fullAt.get(caller) ?? now, now);
      const next = from + stepMs;
      const allowed = next - now <= burst * stepMs + 0.001;
      sweep(fullAt, now);
      fullAt.set(caller, allowed ? next : from);
      const missing = ((allowed ? next : from) - now) / stepMs;
      return {
        allowed,
        limit: burst,
        remaining: Math.max(0, Math.floor(burst - missing + 0.001)),
        resetS: Math.ceil((missing * stepMs) / 1000),
        answerAfterMs: allowed ? 0 : pace.take(caller),
        retryAfterS: allowed ? 0 : Math.max(1, Math.ceil((next - now - burst * stepMs) / 1000)),
      };
    },
  };
}

export interface RefusalPace {
  /** Counts a refusal of `caller`: after how long it is to be answered, ms. */
  take(caller: string): number;
}

export function createRefusalPace(clock: { now(): number }): RefusalPace {
  /** Caller → when its refusals would all have been answered at their pace. */
  const answeredAt = new Map<string, number>();
  return {
    take(caller) {
      const now = clock.now();
      sweep(answeredAt, now);
      const latest = now + REFUSALS_AT_ONCE * REFUSAL_STEP_MS + REFUSAL_LATE_MS;
      const at = Math.min(latest, Math.max(answeredAt.get(caller) ?? now, now) + REFUSAL_STEP_MS);
      answeredAt.set(caller, at);
      return Math.max(0, at - now - REFUSALS_AT_ONCE * REFUSAL_STEP_MS);
    },
  };
}

function sweep(times: Map<string, number>, now: number): void {
  if (times.size < SWEEP_AT) return;
  for (const [caller, at] of times) if (at <= now) times.delete(caller);
}
