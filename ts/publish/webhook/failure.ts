// Why a customer could not be reached, as a cause and in the platform's words: what the customer's own people need to
// fix it.
import { AddressRefused } from "../addresses/address-guard.ts";
import { TooManyLookUps } from "../addresses/look-up-turns.ts";
import { NotResolved } from "../addresses/resolver.ts";
import type { UnreachableCause } from "./answer.ts";
import { HEAD_LIMIT_BYTES } from "./response-head.ts";

/** Longest message kept, characters. */
const DETAIL_LIMIT = 200;
/** Node's codes for an invalid certificate: most are the names of OpenSSL's X509_V_ERR_ constants. */
const CERTIFICATE =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_|CRL_|.*_CERT(_|$))/;
const TLS = /^(EPROTO|ERR_SSL_|ERR_TLS_)/;
/** Node ends a handshake that the peer aborts with ECONNRESET and this message: no separate code distinguishes it from
 *  a connection that broke later. */
const BEFORE_TLS = /before secure TLS connection/;

/** An error of a connection, or of a connection attempt. */
export function failureOf(error: unknown): { readonly cause: UnreachableCause; readonly detail: string } {
  const first = firstOf(error);
  return { cause: causeOf(first), detail: wordsOf(first) };
}

/** Node tries several addresses and reports all of them in one error. */
function firstOf(error: unknown): Error & { readonly code?: string } {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error;
  return first instanceof Error ? first : new Error(String(first));
}

function causeOf(error: Error & { readonly code?: string }): UnreachableCause {
  const { code = "", message } = error;
  if (error instanceof AddressRefused) return "address_refused";
  if (error instanceof NotResolved || error instanceof TooManyLookUps) return "name_not_resolved";
  if (code === "ECONNREFUSED") return "connection_refused";
  if (CERTIFICATE.test(code)) return "certificate";
  if (TLS.test(code) || BEFORE_TLS.test(message)) return "tls";
  return "connection";
}

/** What a response did that cannot be read, for the customer's people. */
const UNREADABLE: readonly (readonly [test: RegExp, words: string])[] = [
  [/^UND_ERR_HEADERS_OVERFLOW/, `the response has more than ${HEAD_LIMIT_BYTES / 1024} KiB of headers`],
  [/^UND_ERR_RES_CONTENT_LENGTH_MISMATCH/, "the response has a Content-Length that contradicts another, or its body"],
  [/^UND_ERR_SOCKET: bad upgrade/, "the response switches to another protocol (101)"],
  [/^UND_ERR_SOCKET: bad response/, "the response to no request, or too many interim responses (1xx)"],
  [/^UND_ERR_SOCKET: other side closed/, "the connection was closed before a complete response (other side closed)"],
  [/^(HPE_\w+: )?Response does not match the HTTP/, "the response is not HTTP/1.1"],
];

/** On one line; the code comes first where the message does not contain it. */
function wordsOf({ code, message }: Error & { readonly code?: string }): string {
  const line = message.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const words = code === undefined || line.includes(code) ? line : `${code}: ${line}`;
  const [, known] = UNREADABLE.find(([test]) => test.test(words)) ?? [];
  const explained = known === undefined || !words.startsWith("HPE_") ? (known ?? words) : `${known}: ${line}`;
  return [...explained].slice(0, DETAIL_LIMIT).join("");
}
