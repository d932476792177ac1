// What a webhook call came to.

/** `breaker_open`, `no_place`: the customer was not even tried (W25). */
export type UnreachableCause = "deadline" | "connection" | "address_refused" | "breaker_open" | "no_place";

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
  | { readonly outcome: "unreachable"; readonly cause: UnreachableCause };
