// When a lost broadcast is restarted. Pure.

/** How a lost broadcast is restarted; each member has a default. */
export interface ReconnectConfig {
  /** Seconds before the first attempt, at least 1. Default 2. */
  readonly minDelaySec?: number;
  /** Most seconds between later attempts. Default 15. */
  readonly maxDelaySec?: number;
  /** Consecutive attempts before it is given up, at least 1. Default 10. */
  readonly maxRetries?: number;
}

export const RECONNECT_DEFAULT: Required<ReconnectConfig> = { minDelaySec: 2, maxDelaySec: 15, maxRetries: 10 };
/** Factor by which each pause is longer than the one before. */
const GROWTH = 1.5;
/** Most seconds that a Retry-After is waited for: a proxy under maintenance may ask for a day. */
const RETRY_AFTER_LIMIT_SEC = 300;

/** Most of a step, or of a Retry-After, by which each client waits longer: many lose the service at the same moment, and
 *  must not come back at the same one. */
const SPREAD = { step: 0.5, retryAfter: 0.2 };

/** Seconds before attempt number `attempt` (from 1), or null when that is one too many. The service's Retry-After is
 *  used when it is longer, within a limit. `random`: from 0 to 1. */
export function delayBefore(
  attempt: number,
  { minDelaySec, maxDelaySec, maxRetries }: Required<ReconnectConfig>,
  retryAfterSec: number | null,
  random: number,
): number | null {
  if (attempt > maxRetries) return null;
  const grown = Math.min(
    minDelaySec * GROWTH ** (attempt - 1 + SPREAD.step * random),
    Math.max(minDelaySec, maxDelaySec),
  );
  return Math.max(grown, Math.min(retryAfterSec ?? 0, RETRY_AFTER_LIMIT_SEC) * (1 + SPREAD.retryAfter * random));
}
