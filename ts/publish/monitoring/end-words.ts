// Why a publish ended, as a sentence for the people of the organisation.
import type { RecordedEndReason } from "../record.ts";

const WORDS: Readonly<Record<RecordedEndReason, string>> = {
  unpublished: "The broadcaster stopped.",
  broadcaster_left: "The connection to the broadcaster was lost.",
  silent: "Nothing came from the broadcaster any more.",
  protocol_error: "The broadcaster sent something that is no valid stream.",
  limit_exceeded: "The broadcaster sent more than this service takes.",
  replaced: "A new publish of the same stream took its place.",
  rejected_by_customer: "Your webhook ended it.",
  kicked: "It was ended by a person, by an API call, or because the stream or the organisation was closed.",
  shutdown: "The service was stopped.",
  handshake_failed: "The browser or encoder could not connect: its network may block UDP and TCP to the media ports.",
  no_media: "The broadcaster connected and sent neither video nor audio.",
  upstream_refused: "The server named in stream_url refused the stream.",
  internal_error: "A fault of this service.",
  gateway_restarted: "The service was started again while it ran.",
  node_lost: "The node that carried it gave no sign of life any more.",
  stream_withdrawn: "The stream was locked or deleted, or the organisation disabled, while your webhook was asked.",
  customer_unreachable: "Your webhook could not be reached too many times in a row.",
};

/** The sentence for a recorded reason; the reason itself when a newer version of headgate wrote it. */
export function endWords(reason: string): string {
  return WORDS[reason as RecordedEndReason] ?? reason;
}
