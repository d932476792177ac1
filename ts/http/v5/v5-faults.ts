// The errors of the deprecated v5 signalling, in its clients' format (docs/v5.md, S2): one table from number to text, and
// one from WHIP's outcomes to a number.
import { BadApiKey, BadToken, ServiceError } from "../../errors.ts";
import type { WhipOutcome } from "../../publish/whip/whip-publishes.ts";
import { isHttpError } from "../error-answers.ts";

const FAULTS = {
  101001: "Unknown type",
  101002: "Parameter required",
  101003: "Wrong data type",
  102001: "Access denied",
  103000: "No credentials",
  103001: "A web token is required",
  103002: "JWT expired",
  103003: "JWT authentication failed",
  103004: "The token is for another stream",
  104001: "API key required",
  104002: "API key is not valid",
  106001: "Internal error",
  107001: "No session",
  107002: "Unknown session",
  109000: "The output cannot be reached",
} as const;

export type V5Code = keyof typeof FAULTS;

/** By the first three digits. None is a name that `getUserMedia` uses, since clients distinguish the two by it. */
const GROUPS: Readonly<Record<number, string>> = {
  101: "GeneralError",
  102: "AccessError",
  103: "AuthenticationError",
  104: "BintuError",
  106: "GeneralError",
  107: "SessionError",
  109: "RTMPError",
};

/** An error reply. `userinfo` is for programs and contains nothing secret. */
export class V5Fault extends ServiceError {
  readonly code = "v5_fault";
  readonly number: V5Code;
  readonly userinfo: Readonly<Record<string, string | number>>;

  constructor(number: V5Code, message: string | null = null, userinfo: V5Fault["userinfo"] = {}) {
    super(message ?? FAULTS[number]);
    this.number = number;
    this.userinfo = userinfo;
  }

  /** The `error` member of a reply; deployed clients check the literal type. */
  toReply(): object {
    const { number, message, userinfo } = this;
    return { type: "NanoError", name: GROUPS[Math.floor(number / 1_000)], code: number, message, userinfo };
  }
}

/** The fault for a failed check of a token or key; null for unexpected errors. */
export function faultOf(error: unknown): V5Fault | null {
  if (error instanceof V5Fault) return error;
  if (error instanceof BadToken) return new V5Fault(error.fault === "jwt expired" ? 103002 : 103003);
  if (error instanceof BadApiKey) return new V5Fault(104002);
  // A role without permission, or a disabled organisation: the message says which.
  return isHttpError(error) ? new V5Fault(102001, error.message) : null;
}

/** The fault for a broadcast that did not start. */
export function faultOfOutcome(
  outcome: Exclude<WhipOutcome, { readonly outcome: "opened" } | { readonly outcome: "refused" }>,
): V5Fault {
  switch (outcome.outcome) {
    case "bad_stream_url":
      return new V5Fault(109000, "output must be rtmp://<an allowed host>/live");
    case "limited":
      return new V5Fault(102001, `Try again in ${outcome.retryAfterS} s`, { retry_after: outcome.retryAfterS });
    case "denied":
      return denial(outcome);
  }
}

function denial({ cause, description, retryAfterS }: Extract<WhipOutcome, { outcome: "denied" }>): V5Fault {
  const userinfo = { cause, ...(retryAfterS !== undefined && { retry_after: retryAfterS }) };
  switch (cause) {
    case "malformed_name":
    case "reserved_field":
      return new V5Fault(101003, description, { parameter: "streamname", cause });
    case "token_required":
    case "key_missing":
    case "key_wrong":
      return new V5Fault(103001, description, { cause });
    case "stopping":
    case "full":
    case "store_unavailable":
    case "internal_error":
      return new V5Fault(106001, description, userinfo);
    case "unknown_stream":
    case "locked_stream":
    case "refused_after_end":
    case "already_live":
    case "organisation_disabled":
    case "rejected_by_customer":
    case "customer_unreachable":
    case "stopped":
    case "too_many_streams":
    case "too_much_bitrate":
    case "too_many_setups":
    case "too_many_names":
      return new V5Fault(102001, description, userinfo);
  }
}
