// Every reason to deny a publish request, and the one table from reason to what the broadcaster receives.
import { REFUSAL_WORDS, type RefusalWords } from "../text/refusal-words.ts";
import type { RefusalReason } from "./refusals/reasons.ts";

export type DenialCause =
  | "malformed_name"
  | "reserved_field"
  | "unknown_stream"
  | "too_many_names"
  | "locked_stream"
  | "refused_after_end"
  | "already_live"
  | "organisation_disabled"
  | "token_required"
  | "key_missing"
  | "key_wrong"
  | "rejected_by_customer"
  | "customer_unreachable"
  | "stopped"
  | "stopping"
  | "full"
  | "too_many_streams"
  | "too_much_bitrate"
  | "too_many_setups"
  | "store_unavailable"
  | "internal_error";

REFUSAL_WORDS satisfies Readonly<Record<DenialCause, RefusalWords>>;

export interface Denied {
  readonly outcome: "denied";
  readonly cause: DenialCause;
  /** The RTMP code (W22a, W24): `bad_name` for a bad, unknown, locked or live name, else `denied`. */
  readonly code: "denied" | "bad_name";
  /** For the broadcaster; at most 200 characters, never a secret. */
  readonly description: string;
  /** Why exactly, where the cause is less precise; absent: the cause says it. */
  readonly reason?: RefusalReason;
  /** Whether the store has the publish as denied, once that is known; never rejects. */
  readonly isRecorded?: Promise<boolean>;
  /** When to try again, seconds from now; absent: not given. */
  readonly retryAfterS?: number;
  /** Other servers that take the publish (`rtmp://host:port/app`); absent: none. */
  readonly elsewhere?: readonly string[];
  /** For the operator's log: what was known about the request at that point. */
  readonly about?: DenialContext;
}

export interface DenialContext {
  /** The trace id as it appears in every log line: 32 hexadecimal digits. */
  trace_id?: string;
  organisation?: string;
  /** The stream's id: names are secrets. */
  stream?: string;
  clientId?: number;
  /** The customer's HTTP status, or why there is none, and the platform's message. */
  status?: number;
  unreachable?: string;
  detail?: string;
}

const DENIALS: Readonly<Record<DenialCause, readonly [code: Denied["code"], description: string]>> = {
  malformed_name: ["bad_name", "Bad stream name"],
  reserved_field: ["bad_name", "Custom arguments must not contain a reserved field"],
  unknown_stream: ["bad_name", "Unknown stream"],
  too_many_names: ["denied", "Too many unknown stream names came from this address; try again in a minute"],
  locked_stream: ["bad_name", "Stream is locked"],
  refused_after_end: ["denied", "Publish was ended by the operator"],
  already_live: ["bad_name", "Stream is already live"],
  organisation_disabled: ["denied", "Organisation is not enabled"],
  token_required: ["denied", "A web token for this stream is required"],
  key_missing: [
    "denied",
    "The publish key is missing: copy the whole stream key or WHIP address again, with key=... in it",
  ],
  key_wrong: ["denied", "The publish key is wrong, or was renewed: copy the whole stream key or WHIP address again"],
  rejected_by_customer: ["denied", "Publish denied"],
  customer_unreachable: ["denied", "Publish could not be authorised"],
  stopped: ["denied", "Publish was ended by the operator"],
  stopping: ["denied", "Service is stopping"],
  full: ["denied", "This server is full; try again in a moment"],
  too_many_streams: ["denied", "This organisation has reached its limit of live streams"],
  too_much_bitrate: ["denied", "The live streams of this organisation have reached its bitrate limit"],
  too_many_setups: ["denied", "Too many streams of this organisation are starting at once; try again in a moment"],
  store_unavailable: ["denied", "Temporarily unavailable"],
  internal_error: ["denied", "Internal error"],
};

/** Whether this node accepts no publish at all: another one may. */
export const isOfNode = ({ cause }: Denied) => cause === "stopping" || cause === "full";

/** A denial with `description`, or with the table's text when it is null. */
export function denied(cause: DenialCause, description: string | null = null): Denied {
  const [code, standard] = DENIALS[cause];
  return { outcome: "denied", cause, code, description: description ?? standard };
}
