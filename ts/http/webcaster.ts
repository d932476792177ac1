// /webcaster, /webcaster/verify and /webcaster/stream: web tokens (docs/broadcasting.md; T1–T5).
import type { Context } from "hono";
import { cors } from "hono/cors";
import type { Kysely } from "kysely";
import type { Config } from "../config.ts";
import { BadToken, InvalidValue } from "../errors.ts";
import { brandingOf, logoUrl } from "../organisation/logo/logos.ts";
import { findStreamByName } from "../organisation/streams.ts";
import type { Refusals } from "../publish/refusals/refusals.ts";
import type { Schema } from "../store/schema.ts";
import { checkExpiry } from "../token/expiry.ts";
import { withoutArguments } from "../token/revocations.ts";
import { lackOf } from "../token/token-argument.ts";
import type { TokenRecords } from "../token/token-records.ts";
import { opensStreamsOf, type TokenClaims, type Tokens, VALIDITY_DEFAULT_S } from "../token/tokens.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, UnixTime, z } from "./openapi.ts";
import { noteForLog } from "./request/caller.ts";
import type { ClientAddress } from "./request/request.ts";
import { requiredText } from "./request/schema.ts";

/** Longest stream name and ingest URL in a token (T2), bytes. */
const CLAIM_LIMIT_BYTES = 2_048;
/** How long a browser may cache the preflight of verify, seconds. */
const PREFLIGHT_AGE_S = 600;

const Token = z.object({ success: z.literal(true), data: z.object({ token: z.string() }) });
const TokenStream = z.object({
  success: z.literal(true),
  data: z.object({
    title: z.string().nullable().openapi({ example: "Evening show" }),
    organisation: z.string().nullable().openapi({ description: "Name of the organisation that the stream belongs to" }),
    logo: z.string().nullable().openapi({ description: "Path of its logo on this service; null for none" }),
  }),
});
const GivenToken = z.object({ token: z.string().min(1).openapi({ description: "The web token" }) });
const Claim = requiredText()
  .refine(
    (given) => Buffer.byteLength(given) <= CLAIM_LIMIT_BYTES,
    `must not be longer than ${CLAIM_LIMIT_BYTES} bytes`,
  )
  .openapi({ maxLength: CLAIM_LIMIT_BYTES });

export const WEBCASTER_ROUTES = {
  "POST /webcaster": {
    tag: "Tokens",
    summary: "Create a web token",
    description:
      "exp and nbf are Unix seconds; by default the token is valid from now on for a week. At most 365 days. " +
      "What a token allows is decided when it is used to publish. With scope_tag, a key can create tokens only for streams " +
      "with that tag; any other stream is unknown to it. With token.unknown_streams = refuse every stream must exist.",
    body: z.object({
      streamname: Claim.openapi({ example: "Ab1Cd-9XyZ0" }),
      ingesturl: Claim.openapi({ example: "rtmp://ingest.example/live" }),
      exp: UnixTime,
      nbf: UnixTime,
      unchecked: z.boolean().nullable().optional().openapi({
        description: "With token.unknown_streams = refuse: true makes a token for a stream that may not exist (yet)",
      }),
    }),
    bodyRequired: true,
    answer: Token,
    errors: [404],
  },
  "POST /webcaster/verify": {
    tag: "Tokens",
    summary: "Verify a web token",
    description: "Can be called from any web page. A token that is not valid: 403 with errorCode 1002 and the reason.",
    body: GivenToken,
    bodyRequired: true,
    answer: Token,
    errors: [403],
  },
  "POST /webcaster/stream": {
    tag: "Tokens",
    summary: "What the broadcaster with a web token sees of the stream",
    description:
      "For /broadcast. `title` is null for a stream without one; each is null where there is no such stream.",
    body: GivenToken,
    bodyRequired: true,
    answer: TokenStream,
    errors: [403],
  },
} satisfies Declarations;

export function webcasterRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly config: { readonly token: Pick<Config["token"], "unknownStreams"> };
    readonly tokens: Tokens;
    readonly tokenRecords: Pick<TokenRecords, "add">;
    readonly refusals: Pick<Refusals, "note">;
    readonly clientAddress: ClientAddress;
  },
): Routes["hono"] {
  const { db, config, tokens, tokenRecords, refusals, clientAddress } = deps;
  const routes = newRoutes(deps, WEBCASTER_ROUTES);

  routes.guarded(
    "POST /webcaster",
    async (c, { organisation, scopeTag, who }, { body: { exp = null, nbf = null, unchecked = null, ...body } }) => {
      const now = tokens.now();
      if (exp !== null) checkExpiry(exp, now);
      if (nbf !== null && nbf >= (exp ?? now + VALIDITY_DEFAULT_S)) throw new InvalidValue("nbf", "must be before exp");
      const isChecked = config.token.unknownStreams === "refuse" && unchecked !== true;
      if (scopeTag !== null || isChecked) {
        await findStreamByName(db, organisation.id, withoutArguments(body.streamname), scopeTag);
      }
      const subject = { ...body, exp, nbf };
      const issued = await tokens.issue({ ...subject, org: organisation.hash });
      await tokenRecords.add(issued, "broadcast", { organisationId: organisation.id, who });
      return c.json({ success: true, data: { token: issued.token } });
    },
  );

  // Browsers verify from any page; only servers create tokens (T5).
  const preflight = cors({
    origin: "*",
    allowMethods: ["POST"],
    allowHeaders: ["content-type"],
    maxAge: PREFLIGHT_AGE_S,
  });
  routes.hono.use("/webcaster/verify", (c, next) => {
    if (c.req.method === "OPTIONS") return preflight(c, next);
    c.header("access-control-allow-origin", "*"); // before the answer is there: afterwards it would be built twice
    return next();
  });
  routes.open("POST /webcaster/verify", async (c, { body: { token } }) => {
    await verified(c, token);
    return c.json({ success: true, data: { token } });
  });

  routes.open("POST /webcaster/stream", async (c, { body: { token } }) => {
    const claims = await verified(c, token).catch((error: unknown) => {
      noteRefused(c, token, error);
      throw error;
    });
    const name = withoutArguments(claims.streamname);
    const branding = opensStreamsOf(claims, name) ? await brandingOf(db, name) : null;
    const { title = null, organisation = null, logo = null } = branding ?? {};
    return c.json({ success: true, data: { title, organisation, logo: logoUrl(logo) } });
  });

  return routes.hono;

  /** A link that /broadcast cannot use: nothing of it gets as far as a publish request. */
  function noteRefused(c: Context, token: string, error: unknown): void {
    if (!(error instanceof BadToken)) return;
    const named = tokens.nameIn(token);
    const name = named === null || named === "" ? null : Buffer.from(named);
    const about = { request: "publish", protocol: "whip", reason: lackOf(error) } as const;
    refusals.note({ ...about, name, address: clientAddress(c), description: error.message });
  }

  async function verified(c: Context, token: string): Promise<TokenClaims> {
    const claims = await tokens.verify(token);
    const { jti, org } = claims;
    noteForLog(c, { caller: "token", callerId: jti, ...(org === null ? {} : { organisationHash: org }) });
    return claims;
  }
}
