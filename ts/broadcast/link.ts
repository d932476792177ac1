// Where a broadcast goes: what a token link (`/broadcast#token=…`) says, read without believing it. The service verifies
// the token when the broadcast starts. A fragment is in no request and in no referrer.

/** What the link of a broadcaster leads to. */
export type Link =
  | {
      readonly kind: "token";
      /** The web token as it came: a secret. */
      readonly token: string;
      /** Stream name without its custom arguments, for people. */
      readonly streamName: string;
    }
  /** There is a token, but it was cut off or changed on its way. */
  | { readonly kind: "broken" }
  /** Stream name and address are given by hand. */
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

/** A stream name as people may see it: what follows the `?` may be a password. */
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
