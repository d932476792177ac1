// Why a publish ended, as a sentence for the people of the organisation.
import { END_CODES, type EndCode, type Ending } from "../ending/ending.ts";
import type { RecordedEndReason } from "../ending/recorded-end-reason.ts";

const WORDS: Readonly<Record<RecordedEndReason, string>> = {
  unpublished: "The broadcaster stopped.",
  broadcaster_left: "The connection to the broadcaster was lost.",
  silent: "The broadcaster stopped sending data.",
  protocol_error: "The broadcaster sent data that is not a valid stream.",
  limit_exceeded: "The broadcaster exceeded a limit of this service.",
  replaced: "A new publish of the same stream took its place.",
  rejected_by_customer: "Your webhook rejected an update.",
  kicked: "It was ended by a person or an API call, or because the stream was closed or the organisation disabled.",
  shutdown: "The service was stopped.",
  handshake_failed: "The browser or encoder could not connect: its network may block UDP and TCP to the media ports.",
  dtls_incomplete: "The browser or encoder reached the media port, but did not complete the DTLS handshake in time.",
  wrong_certificate: "The browser or encoder did not prove to have the certificate named in its offer.",
  no_common_cipher:
    "The browser or encoder supports none of the cipher suites, curves and extensions of DTLS used here.",
  no_srtp_profile: "The browser or encoder supports none of the SRTP profiles used here.",
  dtls_too_old: "The browser or encoder supports only versions of DTLS before 1.2.",
  dtls_refused_by_client: "The browser or encoder refused the DTLS handshake.",
  dtls_invalid: "The browser or encoder violated the DTLS protocol.",
  no_media: "The broadcaster connected but sent neither video nor audio.",
  upstream_refused: "The server named in stream_url refused the stream.",
  internal_error: "An internal error of this service.",
  gateway_restarted: "The service was restarted while the publish was running.",
  node_lost: "The node that served it stopped responding.",
  stream_withdrawn:
    "The stream was locked or deleted, or the organisation disabled, while your webhook was being called.",
  customer_unreachable: "Too many calls in a row to your webhook failed.",
};

/** Ends that somebody asked for, more exactly. */
const ON_PURPOSE: { readonly [code in EndCode]?: string } = {
  ended_by_person: "It was ended by a person",
  ended_by_api: "It was ended through the API",
  ended_by_customer: "Your webhook rejected an update",
  token_revoked: "Its web token was revoked",
  stream_locked: "Its stream was locked",
  stream_deleted: "Its stream was deleted",
  ended_by_operator: "The organisation is not enabled",
};

/** The sentence for a recorded reason; the reason itself when a newer version of headgate wrote it. `ending`: who asked
 *  for the end, if anybody. */
export function endWords(reason: string, ending: Ending | null = null): string {
  const words = ending === null ? undefined : ON_PURPOSE[ending.code];
  if (ending === null || words === undefined) return WORDS[reason as RecordedEndReason] ?? reason;
  return ending.reason === END_CODES[ending.code].standard ? `${words}.` : `${words}: ${ending.reason}`;
}
