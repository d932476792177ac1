// The outcome of a webhook call in words: a name, a tone, and what people can do. Pure.
import type { Records } from "../../client/index.ts";
import { hasFailed, settlesDone } from "../../text/webhook-words.ts";
import type { Tone } from "../parts/tone.ts";

type Outcome = Records["Delivery"]["outcome"];

/** The members common to all records of a call. */
export interface Answer {
  readonly outcome: Outcome;
  /** HTTP status; null when there was no response. */
  readonly status: number | null;
  /** For a 403 the customer's sentence; for a call without a response the platform's message. */
  readonly reason: string | null;
}

interface Words {
  /** Two or three words. */
  readonly short: string;
  /** An explanation and a remedy. */
  readonly long: string;
}

const WITHOUT_ANSWER: Readonly<Record<Exclude<Outcome, "answered">, Words>> = {
  deadline: {
    short: "no answer in time",
    long: "No answer came in time. Answer the publish call first, and do slow work afterwards.",
  },
  name_not_resolved: {
    short: "name not found",
    long: "The host name of the webhook was not found. Check how it is spelt, and its DNS records.",
  },
  connection_refused: {
    short: "connection refused",
    long: "The host exists, but nothing listens on that port. Check that the server is running, and its firewall.",
  },
  certificate: {
    short: "certificate not valid",
    long: "The server’s certificate is not valid. Renew it, and serve the whole chain, including intermediate certificates.",
  },
  tls: {
    short: "TLS failed",
    long: "The TLS handshake failed. The server may not speak TLS 1.2 or newer on that port.",
  },
  connection: {
    short: "connection lost",
    long: "The connection was lost before an answer arrived, or could not be made.",
  },
  address_refused: {
    short: "address not public",
    long: "The name resolves to an address that is not public. Headgate calls public addresses only.",
  },
  breaker_open: {
    short: "not tried",
    long: "The webhook had not answered ten times in a row, so it is called only every 5 seconds until it answers.",
  },
  no_place: {
    short: "not tried",
    long: "A hundred calls were already waiting for the webhook, and none ended in time.",
  },
};

/** Of a call whose answer decides nothing: an alert, or a copy. */
const isOnlyDelivered = ({ call, is_copy = false }: Called) => is_copy || call === "health";

type Called = { readonly call?: Records["Delivery"]["call"]; readonly is_copy?: boolean };

export function toneOf({ outcome, status, ...called }: Pick<Answer, "outcome" | "status"> & Called): Tone {
  if (outcome !== "answered" || status === null) return "bad";
  if (status === 200 || (isOnlyDelivered(called) && settlesDone(status))) return "good";
  if (isOnlyDelivered(called)) return "bad";
  return status === 403 ? "attention" : "bad";
}

/** For a pill: "200", "403", "failed (500)", "certificate not valid". */
export function shortWords({ outcome, status }: Pick<Answer, "outcome" | "status">): string {
  if (outcome !== "answered") return WITHOUT_ANSWER[outcome].short;
  return status !== null && hasFailed(status) ? `failed (${status})` : String(status);
}

/** One or two sentences. `call`: the event that was sent. */
export function longWords(answer: Answer & Called, call: Records["Delivery"]["call"]): string {
  const { outcome, status } = answer;
  if (outcome !== "answered") return WITHOUT_ANSWER[outcome].long;
  if (answer.is_copy && (call === "publish" || call === "update_publish")) {
    return settlesDone(status) ? "Your second server received the copy." : `Your second server ${answered(status)}.`;
  }
  if (call === "publish_done" || call === "health") {
    return settlesDone(status)
      ? "Your webhook received the event."
      : `Your webhook ${answered(status)}, so the event is sent again later.`;
  }
  const refused = call === "publish" ? "the publish is refused" : "the publish is stopped";
  if (status === 200) return call === "publish" ? "The publish is allowed." : "The publish continues.";
  if (status === 403) return `Your webhook answered 403, so ${refused}.`;
  const redirect =
    status !== null && status >= 300 && status < 400
      ? " Redirects are never followed: set the address they lead to."
      : "";
  return `Your webhook ${answered(status)}. Only 200 allows, so ${refused}.${redirect}`;
}

/** Why a publish was not allowed, or null when it was. `unreachable`: the organisation's setting for calls without a
 *  response. */
export function denialWords(answer: Answer, unreachable: "deny" | "allow"): string | null {
  const { outcome, status, reason } = answer;
  if (outcome === "answered" && status === 200) return null;
  if (outcome !== "answered") {
    return unreachable === "allow"
      ? "Your webhook gave no usable answer. With your settings, the publish goes ahead."
      : "Your webhook gave no usable answer. With your settings, the publish is refused.";
  }
  if (reason !== null) return `Your webhook refused it and gave a reason.`;
  return status === 403
    ? "Your webhook refused it without a reason: the first line of a text/plain body would be shown here and to the broadcaster."
    : `Your webhook ${answered(status)}. Only 200 lets a publish go ahead.`;
}

const answered = (status: number | null) =>
  status !== null && hasFailed(status) ? `failed (status ${status})` : `answered ${status}`;

/** Names of the events for people. */
export const CALL_WORDS = {
  publish: "Publish request",
  update_publish: "Update",
  publish_done: "Publish ended",
  health: "Alert",
} as const;
