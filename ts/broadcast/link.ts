// The target of a broadcast according to a token link (`/broadcast#token=…`), read without verification. The service
// verifies the token when the broadcast starts. A fragment is part of no request and no referrer.

/** The content of a broadcaster's link. */
export type Link =
  | {
      readonly kind: "token";
      /** The web token as received: a secret. */
      readonly token: string;
      /** Stream name without its custom arguments, for people. */
      readonly streamName: string;
    }
  /** There is a token, but it was truncated or altered in transit. */
  | { readonly kind: "broken" }
  /** Stream name and address are entered by hand. */
  | { readonly kind: "none" };

/** The token of a fragment (`#token=…`), or null. */
export function tokenIn(fragment: string): string | null {
  return new URLSearchParams(fragment.replace(/^#/, "")).get("token");
}

/** Reads the claims of a web token (RFC 7519 section 3); null stands for no token. */
export function readLink(token: string | null): Link {
  if (token === null) return { kind: "none" };
  const claims = claimsOf(token.trim());
  if (typeof claims?.streamname !== "string") return { kind: "broken" };
  return { kind: "token", token: token.trim(), streamName: withoutArguments(claims.streamname) };
}

/** A stream name for display: what follows the `?` may be a password. */
export function withoutArguments(streamName: string): string {
  return streamName.split("?", 1)[0] ?? "";
}

function claimsOf(token: string): { readonly streamname?: unknown } | null {
  const payload = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token)?.[1];
  if (payload === undefined) return null;
  try {
    const binary = atob(payload.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === "object" ? claims : null;
  } catch {
    return null;
  }
}
