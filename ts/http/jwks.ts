// /.well-known/jwks.json: the public keys of web tokens (RFC 7517, T4).
import { Hono } from "hono";
import type { Tokens } from "../token/tokens.ts";

/** How long a copy may be used; a new key is shown as `next` for longer before it signs. */
const CACHE_S = 300;

export function jwksRoutes(deps: { readonly tokens: Tokens }): Hono {
  const routes = new Hono();
  routes.get("/.well-known/jwks.json", (c) => {
    return c.json(deps.tokens.jwks(), 200, { "cache-control": `public, max-age=${CACHE_S}` });
  });
  return routes;
}
