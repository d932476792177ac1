// Every reason to refuse a publish or a play, in words for people: a title, what happened, and what to do about it. For
// the service, the command line and the dashboard. The codes are checked in publish/refusals/reasons.ts.

import { denialClause, hasFailed, sentence } from "./webhook-words.ts";

export interface RefusalWords {
  /** Two or three words, for a choice. */
  readonly title: string;
  /** A sentence. */
  readonly happened: string;
  /** One or two sentences for the people of the organisation. */
  readonly advice: string;
}

const words = (title: string, happened: string, advice: string): RefusalWords => ({ title, happened, advice });

const WAIT = "Nothing is wrong with the stream; the next attempt may succeed. If it goes on, tell the operator.";

const FAILED = "Your server answered with an error; the delivery shows the request and its response.";

export const REFUSAL_WORDS = {
  malformed_name: words(
    "Name not valid",
    "The stream name is not valid.",
    "Copy the stream name from the stream’s page into the encoder again.",
  ),
  reserved_field: words(
    "Reserved argument",
    "The custom arguments contain a reserved field.",
    "Rename the argument: the webhook documentation lists the names that Headgate uses itself.",
  ),
  unknown_stream: words(
    "Unknown name",
    "No stream has this name.",
    "Compare the name in the encoder with the one on the stream’s page; upper and lower case differ. Or the stream was deleted.",
  ),
  too_many_names: words(
    "Too many wrong names",
    "Too many wrong stream names or publish keys came from this address within a minute.",
    "Correct the name in the program that repeats it, and wait for a minute. If nobody of yours uses the address, somebody is guessing names.",
  ),
  locked_stream: words("Stream locked", "The stream is locked.", "Unlock it from the menu on its page."),
  refused_after_end: words(
    "Just ended",
    "The broadcast was ended, and the stream is refused for some seconds after that.",
    "Wait, or choose “Allow broadcasts again” in the menu on its page.",
  ),
  already_live: words(
    "Live already",
    "The stream was live already.",
    "End the other broadcast first, or use another stream.",
  ),
  organisation_disabled: words(
    "Organisation not enabled",
    "The organisation is not enabled.",
    "Its trial is over, or the operator disabled it: ask the operator.",
  ),
  token_required: words(
    "No web token",
    "No web token came with the request.",
    "Use a link or token from the stream’s page, or change “Every publish needs a web token” in the settings.",
  ),
  token_invalid: words(
    "Token not valid",
    "The token is not valid.",
    "Use a whole, unchanged token: create a new link on the stream’s page.",
  ),
  token_expired: words("Token expired", "The token has expired.", "Create a new link or token on the stream’s page."),
  token_revoked: words(
    "Token revoked",
    "The token was revoked.",
    "If the broadcaster may broadcast again, create a new link or token on the stream’s page.",
  ),
  token_of_another_stream: words(
    "Token of another stream",
    "The token is for another stream.",
    "Use the token with its own stream, or create one on this stream’s page.",
  ),
  rejected_by_customer: words(
    "Denied by webhook",
    "The webhook denied it.",
    "Your server decided so. Its request and response are among the deliveries.",
  ),
  customer_unreachable: words(
    "Webhook unreachable",
    "The webhook could not be reached.",
    "The webhook’s page and the deliveries name the cause.",
  ),
  stopped: words(
    "Ended while asking",
    "It was ended while the webhook was asked.",
    "A person or program ended or locked the stream at that moment; the audit log says who.",
  ),
  stopping: words(
    "Node stopping",
    "The node was draining or stopping.",
    "Encoders that reconnect reach a node that accepts. With a single node, wait for its restart.",
  ),
  full: words(
    "Server full",
    "The server was full.",
    "The operator needs to add capacity; another attempt may succeed.",
  ),
  too_many_streams: words(
    "Too many live streams",
    "The organisation had reached its limit of live streams.",
    "End another broadcast, or ask the operator for a higher limit.",
  ),
  too_much_bitrate: words(
    "Too much bitrate",
    "The live streams of the organisation had reached its bitrate limit.",
    "Lower the bitrate of broadcasts or end one, or ask the operator for a higher limit.",
  ),
  too_many_setups: words(
    "Too many at once",
    "Too many streams of the organisation were starting at once.",
    "Encoders that reconnect get in after some seconds. Start large numbers one after another.",
  ),
  store_unavailable: words("Store unavailable", "The store did not answer.", WAIT),
  internal_error: words("Internal error", "An internal error occurred.", WAIT),
  too_many_requests: words(
    "Too many requests",
    "Too many requests came from this address.",
    "Let the program wait longer before it tries again.",
  ),
  overloaded: words("Overloaded", "Too many requests came from all addresses together.", WAIT),
  offer_refused: words(
    "Offer not usable",
    "The offer cannot be used: its codecs, its form or its size.",
    "Use a current browser or encoder with H.264 video and Opus audio.",
  ),
  bad_stream_url: words(
    "Bad stream_url",
    "The address to publish to (stream_url) is not allowed or cannot be reached.",
    "Correct it in the page or program that broadcasts.",
  ),
  bad_request: words(
    "Bad request",
    "A parameter of the request is missing or not valid.",
    "Compare the address in the encoder with the one on the stream’s page.",
  ),
  connection_refused: words(
    "Connection refused",
    "A connection by RTMP was refused before it named a stream.",
    "What it was told names the cause: often another application than “live”, RTMPS on the port of RTMP, or no RTMP at all.",
  ),
  key_missing: words(
    "No publish key",
    "The stream needs a publish key, and none came with the request.",
    "Copy the stream key, which contains it, from the stream’s page into the encoder.",
  ),
  key_wrong: words(
    "Wrong publish key",
    "The publish key is wrong, or was renewed.",
    "Copy the stream key from the stream’s page into the encoder again.",
  ),
  key_not_allowed: words(
    "API key not allowed",
    "The API key is not valid, or may not broadcast to this stream.",
    "Use a key that is not revoked and covers the stream, or a token.",
  ),
  not_live: words("Not live", "Nothing of this name was live.", "Start the broadcast first, or compare the name."),
  address: words(
    "Address not allowed",
    "This address may not play the stream.",
    "Play it from one of the “addresses that may play”, or change them in the settings.",
  ),
} as const satisfies Readonly<Record<string, RefusalWords>>;

/** The words for a reason; rows of other versions may have reasons unknown here. `status`: the webhook's, if that denied
 *  it and it is known. */
export function refusalWords(reason: string, status: number | null = null): RefusalWords {
  if (reason === "rejected_by_customer" && status !== null) {
    const { title, advice } = REFUSAL_WORDS[reason];
    const happened = sentence(denialClause(status));
    return hasFailed(status) ? words("Webhook failed", happened, FAILED) : words(title, happened, advice);
  }
  const known: Readonly<Record<string, RefusalWords>> = REFUSAL_WORDS;
  const name = reason.replaceAll("_", " ");
  return known[reason] ?? words(name, `Refused: ${name}.`, "");
}
