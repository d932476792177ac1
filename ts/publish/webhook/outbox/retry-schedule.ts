// When an event is retried, and when it is given up (W17). Pure.
import { settlesDone } from "../../../text/webhook-words.ts";
import type { WebhookAnswer } from "../answer.ts";

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

/** Delays after the first, second … attempt, ms; the last one repeats. */
const DELAYS_MS: readonly number[] = [1, 5, 30, 120, 600].map((seconds) => seconds * SECOND);
/** How long an event without a usable answer is retried. */
export const LIFETIME_MS = 72 * HOUR;
/** The same for an alert: an older one says nothing about the present, and those after it wait for it. */
export const ALERT_LIFETIME_MS = HOUR;
/** For a 4xx that means "never": five in a row within an hour, spread so that a quarter of an hour of misconfiguration
 *  loses nothing. */
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

/** The refusals of an event in a row: how many, and the first one's time, epoch ms. */
export interface Refusals {
  readonly count: number;
  readonly since: number | null;
}

/** The refusals including this answer; any other answer resets them, since only refusals in a row count. */
export function refusalsAfter(answer: WebhookAnswer, before: Refusals, now: number): Refusals {
  if (!wasTried(answer)) return before;
  return isRefusal(answer) ? { count: before.count + 1, since: before.since ?? now } : { count: 0, since: null };
}

/** `attempts`: made so far, this one included, as are the `refusals`. `createdAt` and `now` in epoch ms; `random` in
 *  [0, 1). */
export function verdictOf(
  answer: WebhookAnswer,
  event: {
    readonly attempts: number;
    readonly createdAt: number;
    readonly refusals: Refusals;
    readonly lifetimeMs: number;
  },
  now: number,
  random: number,
): Verdict {
  const status = answer.outcome === "answered" ? answer.status : null;
  if (settlesDone(status)) return { next: "delivered" };
  const refused = isRefusal(answer);
  const { count, since } = event.refusals;
  if (refused && count >= REFUSED_ATTEMPTS_LIMIT) return { next: "given_up" };
  const delays = refused ? REFUSED_DELAYS_MS : DELAYS_MS;
  const scheduled = delays[Math.min(refused ? count : event.attempts, delays.length) - 1] ?? SECOND;
  const delay = wasTried(answer) ? scheduled : NOT_TRIED_DELAY_MS;
  const jittered = delay * (1 + JITTER * (2 * random - 1));
  const until = refused
    ? Math.min((since ?? now) + REFUSED_LIFETIME_MS, event.createdAt + event.lifetimeMs)
    : event.createdAt + event.lifetimeMs;
  // Capped, so that a Retry-After beyond the event's lifetime still leaves a last attempt; refusals ignore it.
  const asked = answer.outcome === "answered" && !refused ? retryAfterMs(answer.retryAfter, now) : 0;
  const at = Math.round(now + Math.max(jittered, Math.min(asked, until - now)));
  return at > until ? { next: "given_up" } : { next: "retry", at };
}

/** A 4xx that means "never". */
function isRefusal(answer: WebhookAnswer): boolean {
  if (answer.outcome !== "answered") return false;
  const { status } = answer;
  return status >= 400 && status < 500 && status !== 408 && status !== 410 && status !== 429;
}

/** Retry-After (RFC 9110, section 10.2.3), seconds or a date, as ms from `now`; 0 when absent or invalid. */
function retryAfterMs(header: string | null, now: number): number {
  const given = header?.trim() ?? "";
  // Every form of HTTP-date begins with the day's name; the platform takes "-3600" for the year.
  const date = /^[a-z]{3}/i.test(given) ? Date.parse(given) - now : 0;
  const wanted = /^\d+(\.\d*)?$/.test(given) ? Number(given) * SECOND : date;
  return Number.isNaN(wanted) ? 0 : Math.min(Math.max(wanted, 0), RETRY_AFTER_LIMIT_MS);
}
