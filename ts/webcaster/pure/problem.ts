// Converts the service's refusals (RFC 9457 problem documents, docs/whip.md) to errors of this package. Pure.
import { type ErrorName, WebcasterError } from "./errors.ts";

/** By HTTP status; other 4xx are `request_refused`, other 5xx `service_failed`. */
const BY_STATUS: Readonly<Record<number, ErrorName>> = {
  401: "token_refused",
  403: "denied",
  404: "stream_unknown",
  409: "stream_taken",
  429: "too_many_requests",
  503: "service_busy",
  504: "customer_silent",
};

/** The session has ended (docs/whip.md). */
export const GONE = 410;

/** The error for an unsuccessful status, with the problem document's own text when the body is one. `retryAfter` is the
 *  header's value. */
export function refusal(status: number, body: string, retryAfter: string | null, nowMs: number): WebcasterError {
  const document = documentOf(body);
  const by = BY_STATUS[status] ?? (status < 500 ? "request_refused" : "service_failed");
  const isEnd = status === GONE;
  // A session that was lost may be followed by another one; one that was ended on purpose must not.
  return new WebcasterError(isEnd ? (document.final === true ? "ended" : "ended_by_service") : by, {
    status,
    detail: textOf(document.detail) ?? textOf(document.title) ?? `HTTP status ${status}`,
    problem: textOf(document.code),
    ...(isEnd && { endedBy: textOf(document.ended_by), sentence: textOf(document.title) }),
    retryAfterSec: secondsOf(retryAfter ?? "", nowMs),
  });
}

/** Of a Retry-After (RFC 9110 10.2.3), which proxies also write as a date; null for anything else. */
function secondsOf(retryAfter: string, nowMs: number): number | null {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const ms = / GMT$/.test(retryAfter) ? Date.parse(retryAfter) - nowMs : Number.NaN;
  return Number.isNaN(ms) ? null : Math.max(0, Math.ceil(ms / 1_000));
}

function documentOf(body: string): Readonly<Record<string, unknown>> {
  try {
    const document: unknown = JSON.parse(body);
    return typeof document === "object" && document !== null ? { ...document } : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
