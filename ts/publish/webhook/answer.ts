// The outcome of a webhook call.

/** Every reason for having no answer. `connection`: the connection was lost, or failed for a reason without a name
 *  here; `breaker_open`, `no_place`: no attempt was made (W25). */
export const UNREACHABLE_CAUSES = [
  "deadline",
  "name_not_resolved",
  "connection_refused",
  "certificate",
  "tls",
  "connection",
  "address_refused",
  "breaker_open",
  "no_place",
] as const;
export type UnreachableCause = (typeof UNREACHABLE_CAUSES)[number];

/** A customer's answer, or why there is none. */
export type WebhookAnswer =
  | {
      readonly outcome: "answered";
      /** HTTP status; redirects count as answers. */
      readonly status: number;
      /** First line of a 403's plain text, at most 200 printable characters (W26); null when there is none. */
      readonly reason: string | null;
      /** The Retry-After header as received, or null. */
      readonly retryAfter: string | null;
    }
  | {
      readonly outcome: "unreachable";
      readonly cause: UnreachableCause;
      /** The platform's message, or how far the call got, at most 200 characters. */
      readonly detail: string;
    };
