// What a webhook call came to.

/** Every reason for having no answer. `connection`: it was lost, or never came about for a reason that has no name here;
 *  `breaker_open`, `no_place`: the customer was not even tried (W25). */
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
      /** HTTP status; redirects are answers like any other. */
      readonly status: number;
      /** First line of a 403's plain text, at most 200 printable characters (W26); null when there is none. */
      readonly reason: string | null;
      /** The Retry-After header as it came, or null. */
      readonly retryAfter: string | null;
    }
  | {
      readonly outcome: "unreachable";
      readonly cause: UnreachableCause;
      /** What the platform says of it, or how far the call came, at most 200 characters. */
      readonly detail: string;
    };
