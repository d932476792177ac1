// /.well-known/jwks.json: the public keys of web tokens (RFC 7517, T4).
import type { Tokens } from "../token/tokens.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";

/** How long a response may be cached; a new key is published as `next` for longer than this before it signs. */
const CACHE_S = 300;

export const JWKS_ROUTES = {
  "GET /.well-known/jwks.json": {
    tag: "Tokens",
    summary: "Public keys of web tokens",
    description: "A JSON Web Key Set (RFC 7517). A key is shown before it signs and after it has retired.",
    answer: z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.string(), alg: z.string() })) }),
  },
} satisfies Declarations;

export function jwksRoutes(deps: RouteDeps & { readonly tokens: Tokens }): Routes["hono"] {
  const routes = newRoutes(deps, JWKS_ROUTES);
  routes.open("GET /.well-known/jwks.json", async (c) =>
    c.json(await deps.tokens.jwks(), 200, { "cache-control": `public, max-age=${CACHE_S}` }),
  );
  return routes.hono;
}
