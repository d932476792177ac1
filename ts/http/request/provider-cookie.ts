// The cookie that says which identity provider the session of a browser came from, so that a sign-out ends that one, too.
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { IdentitySignIn } from "../../organisation/identity/sign-in.ts";
import { AGE_LIMIT_MS } from "../../organisation/logins.ts";

/** The provider, and its ID token; encrypted. */
const PROVIDER_COOKIE = "__Host-headgate-provider";
const COOKIE = { path: "/", secure: true, httpOnly: true, sameSite: "Lax" } as const;

/** `cookie`: of the sign-in there. */
export function rememberProvider(c: Context, cookie: string): void {
  setCookie(c, PROVIDER_COOKIE, cookie, { ...COOKIE, maxAge: AGE_LIMIT_MS / 1_000 });
}

/** Where the browser, whose session has ended here, ends it at its provider; null when it came from none, or that has no such
 *  place. */
export async function leaveProvider(
  c: Context,
  identitySignIn: Pick<IdentitySignIn, "endAtProvider">,
): Promise<string | null> {
  const cookie = getCookie(c, PROVIDER_COOKIE);
  if (cookie === undefined) return null;
  forgetProvider(c);
  return await identitySignIn.endAtProvider(cookie);
}

/** The session of this browser is from no provider. */
export function forgetProvider(c: Context): void {
  if (getCookie(c, PROVIDER_COOKIE) !== undefined) deleteCookie(c, PROVIDER_COOKIE, COOKIE);
}
