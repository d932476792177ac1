// When a publish_done is retried, and when it is given up (W17). Pure.
import type { WebhookAnswer } from "./answer.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** Delays after the first, second … attempt, ms; the last one repeats. */
const DELAYS_MS: readonly number[] = [1, 5, 30, 120, 600].map((seconds) => seconds * SECOND);
/** How long an event without a usable answer is retried. */
const LIFETIME_MS = 72 * HOUR;
/** For a 4xx that means "never": five attempts, spread so that a quarter of an hour of misconfiguration loses
 *  nothing. */
const REFUSED_DELAYS_MS: readonly number[] = [1, 30, 300, 1_800].map((seconds) => seconds * SECOND);
const REFUSED_ATTEMPTS_LIMIT = 5;
const REFUSED_LIFETIME_MS = HOUR;
/** Longest Retry-After honoured: a customer cannot postpone an event beyond its lifetime. */
const RETRY_AFTER_LIMIT_MS = 24 * HOUR;
const JITTER = 0.1;
/** Delay after the customer's gate refused the call: as often as it probes (W25), ms. It does not count as an
 *  attempt. */
const NOT_TRIED_DELAY_MS = 5 * SECOND;

export type Verdict =
  | { readonly next: "delivered" }
  | { readonly next: "given_up" }
  /** Epoch ms. */
  | { readonly next: "retry"; readonly at: number };

/** False when the customer's gate refused the call. */
export function wasTried(answer: WebhookAnswer): boolean {
  return answer.outcome === "answered" || (answer.cause !== "breaker_open" && answer.cause !== "no_place");
}

/** `attempts`: made so far, this one included. `createdAt` and `now` in epoch ms; `random` in [0, 1). */
export function verdictOf(
  answer: WebhookAnswer,
  event: { readonly attempts: number; readonly createdAt: number },
  now: number,
  random: number,
): Verdict {
  const status = answer.outcome === "answered" ? answer.status : null;
  if (status !== null && ((status >= 200 && status < 300) || status === 410)) return { next: "delivered" };
  const refused = status !== null && status >= 400 && status < 500 && status !== 408 && status !== 429;
  if (refused && event.attempts >= REFUSED_ATTEMPTS_LIMIT) return { next: "given_up" };
  const delays = refused ? REFUSED_DELAYS_MS : DELAYS_MS;
  const scheduled = delays[Math.min(event.attempts, delays.length) - 1] ?? SECOND;
  const delay = wasTried(answer) ? scheduled : NOT_TRIED_DELAY_MS;
  const jittered = delay * (1 + JITTER * (2 * random - 1));
  const asked = answer.outcome === "answered" ? retryAfterMs(answer.retryAfter, now) : 0;
  const at = Math.round(now + Math.max(jittered, asked));
  const lifetime = refused ? REFUSED_LIFETIME_MS : LIFETIME_MS;
  return at - event.createdAt > lifetime ? { next: "given_up" } : { next: "retry", at };
}

/** Retry-After (RFC 9110, section 10.2.3), seconds or a date, as ms from `now`; 0 when absent or invalid. */
function retryAfterMs(header: string | null, now: number): number {
  if (header === null) return 0;
  const wanted = /^\d+$/.test(header.trim()) ? Number(header) * SECOND : Date.parse(header) - now;
  return Number.isNaN(wanted) ? 0 : Math.min(Math.max(wanted, 0), RETRY_AFTER_LIMIT_MS);
}
