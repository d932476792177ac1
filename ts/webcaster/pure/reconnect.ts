// When a lost broadcast is tried again. Pure.

/** How a lost broadcast is tried again; each member has a default. */
export interface ReconnectConfig {
  /** Seconds before the first try, at least 1. Default 2. */
  readonly minDelaySec?: number;
  /** Seconds between later tries, at most. Default 15. */
  readonly maxDelaySec?: number;
  /** Tries in a row before it is given up, at least 1. Default 10. */
  readonly maxRetries?: number;
}

export const RECONNECT_DEFAULT: Required<ReconnectConfig> = { minDelaySec: 2, maxDelaySec: 15, maxRetries: 10 };
/** How much longer each pause is than the one before. */
const GROWTH = 1.5;

/** Seconds before try number `attempt` (from 1), or null when it is one too many. The service's own request
 *  (Retry-After) counts when it is longer. */
export function delayBefore(
  attempt: number,
  { minDelaySec, maxDelaySec, maxRetries }: Required<ReconnectConfig>,
  retryAfterSec: number | null = null,
): number | null {
  if (attempt > maxRetries) return null;
  const grown = Math.min(minDelaySec * GROWTH ** (attempt - 1), Math.max(minDelaySec, maxDelaySec));
  return Math.max(grown, retryAfterSec ?? 0);
}
