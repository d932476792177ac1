// /login/identity-provider: a browser signs in at the identity provider of an organisation and comes back. For browsers
// alone: no program requests it, and every response leads to a page.
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Config } from "../../config.ts";
import { type IdentitySignIn, type Refusal, SIGN_IN_LIMIT_MS } from "../../organisation/identity/sign-in.ts";
import { AGE_LIMIT_MS } from "../../organisation/logins.ts";
import { newRoutes, type RouteDeps, type Routes } from "../openapi.ts";
import { rememberProvider } from "../request/provider-cookie.ts";
import { baseUrlOf, type ClientAddress, SESSION_COOKIE } from "../request/request.ts";
import { redirectUri } from "./addresses.ts";

/** What this browser has begun. Lax: the browser sends it when the provider, another site, leads back here by a link. */
const BEGUN_COOKIE = "__Host-headgate-sign-in";
const COOKIE = { path: "/", secure: true, httpOnly: true, sameSite: "Lax" } as const;

export function signInRoutes(
  deps: RouteDeps & {
    readonly config: Pick<Config, "http">;
    readonly identitySignIn: IdentitySignIn;
    readonly clientAddress: ClientAddress;
  },
): Routes["hono"] {
  const { config, identitySignIn, clientAddress } = deps;
  const { hono } = newRoutes(deps, {});

  hono.get("/login/identity-provider/:organisation", async (c) => {
    const hash = c.req.param("organisation");
    const to = redirectUri(baseUrlOf(c, config), hash);
    const outcome = await identitySignIn.begin(hash, to, c.get("requestId"));
    if ("refused" in outcome) return refused(c, hash, outcome.refused);
    setCookie(c, BEGUN_COOKIE, outcome.cookie, { ...COOKIE, maxAge: SIGN_IN_LIMIT_MS / 1_000 });
    return c.redirect(outcome.location, 302);
  });

  hono.get("/login/identity-provider/:organisation/callback", async (c) => {
    const hash = c.req.param("organisation");
    // What the provider was given: behind a proxy the request itself names another scheme or host.
    const url = new URL(redirectUri(baseUrlOf(c, config), hash));
    url.search = new URL(c.req.url).search;
    const cookie = getCookie(c, BEGUN_COOKIE) ?? null;
    const about = { address: clientAddress(c), requestId: c.get("requestId") };
    const outcome = await identitySignIn.finish({ hash, url, cookie, ...about });
    deleteCookie(c, BEGUN_COOKIE, COOKIE);
    if ("refused" in outcome) return refused(c, hash, outcome.refused);
    setCookie(c, SESSION_COOKIE, outcome.sessionId, { ...COOKIE, maxAge: AGE_LIMIT_MS / 1_000 });
    rememberProvider(c, outcome.cookie);
    return c.redirect("/dashboard/", 302);
  });

  return hono;
}

/** The page says why; what is behind `#` reaches no server. */
function refused(c: Context, hash: string, why: Refusal): Response {
  const page = /^[A-Za-z0-9]{1,32}$/.test(hash) ? `/dashboard/sign-in/${hash}` : "/dashboard/";
  return c.redirect(`${page}#refused=${why}`, 302);
}
