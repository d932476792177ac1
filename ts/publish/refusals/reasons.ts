// Every reason to refuse a publish or a play, in words for people. Those of `DenialCause` (denials.ts) are decided by
// the admission, the others by the edge of a protocol or for players. A new one is a row here.
import type { DenialCause } from "../denials.ts";

const REASON_WORDS = {
  malformed_name: "The stream name is not valid.",
  reserved_field: "The custom arguments contain a reserved field.",
  unknown_stream: "No stream has this name.",
  too_many_names: "Too many wrong stream names or publish keys came from this address within a minute.",
  locked_stream: "The stream is locked.",
  refused_after_end: "The broadcast was ended, and the stream is refused for some seconds after that.",
  already_live: "The stream was live already.",
  organisation_disabled: "The organisation is not enabled.",
  token_required: "No web token came with the request.",
  token_invalid: "The token is not valid.",
  token_expired: "The token has expired.",
  token_revoked: "The token was revoked.",
  token_of_another_stream: "The token is for another stream.",
  rejected_by_customer: "The webhook denied it.",
  customer_unreachable: "The webhook could not be reached.",
  stopped: "It was ended while the webhook was asked.",
  stopping: "The node was draining or stopping.",
  full: "The server was full.",
  too_many_streams: "The organisation had reached its limit of live streams.",
  too_much_bitrate: "The live streams of the organisation had reached its bitrate limit.",
  too_many_setups: "Too many streams of the organisation were starting at once.",
  store_unavailable: "The store did not answer.",
  internal_error: "An internal error occurred.",
  too_many_requests: "Too many requests came from this address.",
  overloaded: "Too many requests came from all addresses together.",
  offer_refused: "The offer cannot be used: its codecs, its form or its size.",
  bad_stream_url: "The address to publish to (stream_url) is not allowed or cannot be reached.",
  bad_request: "A parameter of the request is missing or not valid.",
  key_missing: "The stream needs a publish key, and none came with the request.",
  key_wrong: "The publish key is wrong, or was renewed.",
  key_not_allowed: "The API key is not valid, or may not broadcast to this stream.",
  not_live: "Nothing of this name was live.",
  address: "This address may not play the stream.",
} as const satisfies Readonly<Record<DenialCause, string>> & Readonly<Record<string, string>>;

export type RefusalReason = keyof typeof REASON_WORDS;

export const REFUSAL_REASONS = Object.keys(REASON_WORDS) as [RefusalReason, ...RefusalReason[]];

/** A sentence; rows of other versions may have reasons unknown here. */
export function reasonWords(reason: string): string {
  const words: Readonly<Record<string, string>> = REASON_WORDS;
  return words[reason] ?? `Refused: ${reason.replaceAll("_", " ")}.`;
}
