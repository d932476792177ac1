// Why a customer could not be reached, by name and in the platform's words: what their own people must know to mend it.
import { AddressRefused } from "../addresses/address-guard.ts";
import { TooManyLookUps } from "../addresses/look-up-turns.ts";
import { NotResolved } from "../addresses/resolver.ts";
import type { UnreachableCause } from "./answer.ts";

/** Longest words that are kept, characters. */
const DETAIL_LIMIT = 200;
/** Node's codes for a certificate that does not hold: most are the names of OpenSSL's X509_V_ERR_ constants. */
const CERTIFICATE =
  /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_|CRL_|.*_CERT(_|$))/;
const TLS = /^(EPROTO|ERR_SSL_|ERR_TLS_)/;
/** Node ends a handshake that the peer breaks off with ECONNRESET and these words: no code of its own tells it from a
 *  connection that broke later. */
const BEFORE_TLS = /before secure TLS connection/;

/** An error of a connection, or of a connection attempt. */
export function failureOf(error: unknown): { readonly cause: UnreachableCause; readonly detail: string } {
  const first = firstOf(error);
  return { cause: causeOf(first), detail: wordsOf(first) };
}

/** Node tries several addresses and tells of all of them in one error. */
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

/** In one line; the code stands in front where the words do not say it. */
function wordsOf({ code, message }: Error & { readonly code?: string }): string {
  const line = message.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim();
  const words = code === undefined || line.includes(code) ? line : `${code}: ${line}`;
  return [...words].slice(0, DETAIL_LIMIT).join("");
}
