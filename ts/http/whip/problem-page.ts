// The page that the `type` of WHIP's problem documents links to: each code with its status, and a remedy.
import { ICON_LINK } from "../request/icon.ts";
import { PROBLEMS } from "./whip-problems.ts";

/** Reasons for which the media core refuses an offer (crates/whip/src/sdp/error.rs). */
const OFFERS: Readonly<Record<string, readonly [status: number, title: string]>> = {
  offer_too_long: [400, "Too many lines, payload types or candidates"],
  offer_malformed: [400, "Not valid SDP"],
  offer_credentials: [400, "No usable ICE credentials"],
  offer_fingerprint: [400, "No SHA-256 certificate fingerprint"],
  offer_setup: [422, "Unsupported DTLS setup"],
  offer_sections: [422, "Must have one audio section, one video section, or one of each"],
  offer_direction: [422, "A section that does not send media"],
  offer_transport: [422, "No DTLS-SRTP, no bundle or no RTCP multiplexing"],
  offer_audio_codec: [422, "An audio section without Opus"],
  offer_audio_channels: [422, "Opus with more than two channels"],
  offer_video_codec: [422, "A video section without H.264 (Baseline, Main or High)"],
};
/** Remedies, by status. */
const REMEDIES: Readonly<Record<number, string>> = {
  400: "Correct the request; detail says what is wrong with it.",
  401: "Get a new web token.",
  403: "Ask the owner of the stream; the customer's server or an operator refused the publish.",
  404: "Check the name or the address; an ended session no longer exists.",
  405: "See the Allow header.",
  409: "Wait for the other publish to end, or use another stream.",
  410: "The session has ended, as ended_by and detail say. Start a new one by itself only if final is false.",
  412: "Get the session's current entity tag.",
  413: "Send less.",
  415: "Send the content type that the Accept headers of OPTIONS name.",
  422: "Change the offer as detail says.",
  428: "Send the session's entity tag as If-Match.",
  429: "Wait as long as Retry-After says.",
  500: "Report the x-request-id to the operator.",
  503: "Wait as long as Retry-After says.",
  504: "Try again; if it persists, the customer's server is not answering.",
};

/** Every code a problem document can have, with its status and title. */
export const PROBLEM_CODES = { ...PROBLEMS, ...OFFERS };

/** The page as HTML; nothing in it comes from a request. */
export function problemPage(): string {
  const rows = Object.entries(PROBLEM_CODES).map(
    ([code, [status, title]]) =>
      `<tr id="${code}"><td><code>${code}</code><td>${status}<td>${title}<td>${REMEDIES[status] ?? ""}`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Problems of WHIP</title>
${ICON_LINK}
<h1>Problems of WHIP</h1>
<p>What the <code>code</code> of a problem document (RFC 9457) means, and what helps.</p>
<table>
<tr><th>Code<th>Status<th>Meaning<th>What to do
${rows.join("\n")}
</table>
</html>
`;
}
