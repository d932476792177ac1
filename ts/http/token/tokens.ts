// /stream/{id}/play-token: tokens for players (R3). /webcaster/revoke: revokes tokens, and ends the broadcasts they
// opened (T7).
import type { Kysely } from "kysely";
import { InvalidValue, ParameterRequired, UnknownStream } from "../../errors.ts";
import { changed } from "../../organisation/audit.ts";
import { findStream } from "../../organisation/streams.ts";
import type { Schema } from "../../store/schema.ts";
import { checkExpiry } from "../../token/expiry.ts";
import { type Revocations, revokeStream } from "../../token/revocations.ts";
import { checkRevocations, REVOKED_LIMIT, revokeTokenOf } from "../../token/revoking.ts";
import type { TokenRecords } from "../../token/token-records.ts";
import { PLAY_VALIDITY_DEFAULT_S, type Tokens } from "../../token/tokens.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, UnixTime, z } from "../openapi.ts";
import { text } from "../request/schema.ts";

/** A request gives exactly one of these. */
const WAYS = ["token", "jti", "streamname"] as const;
/** Longest jti accepted, characters; ours have 36. */
const JTI_LENGTH_LIMIT = 128;
const Way = text().nullable().optional();

interface TokenRoutesDeps extends RouteDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly tokens: Tokens;
  readonly revocations?: Revocations;
  readonly tokenRecords: Pick<TokenRecords, "add" | "flush">;
}

export const TOKEN_ROUTES = {
  "POST /stream/{id}/play-token": {
    tag: "Tokens",
    summary: "Create a token for playing a stream",
    description:
      "RTMP players need it when play is token in /organisation/settings. exp is in Unix seconds; default: a day from " +
      "now, at most 365 days. Players that already play continue when the token expires or is revoked.",
    body: z.object({ exp: UnixTime }),
    answer: z.object({
      token: z.string(),
      exp: z.int(),
      streamname: z.string().openapi({
        description: "Stream name for the player, after a url of the stream's playout",
        example: "Ab1Cd-9XyZ0?token=eyJhbGciOi…",
      }),
    }),
    errors: [404],
  },
  "POST /webcaster/revoke": {
    tag: "Tokens",
    summary: "Revoke web tokens and play tokens",
    description:
      "Exactly one of token, jti and streamname. token or jti: this token is never valid again. streamname " +
      "(without arguments): every token issued so far for this stream of your organisation; later ones are valid. Running " +
      "broadcasts that started with a revoked token end. An organisation can have 10,000 single tokens revoked at a time, " +
      "and those of 10,000 streams; a stream that is deleted no longer counts.",
    body: z.object({
      token: Way.openapi({ description: "A web token or a play token" }),
      jti: Way.openapi({ description: "The jti of a token", maxLength: JTI_LENGTH_LIMIT }),
      streamname: Way.openapi({ description: "Without arguments", example: "Ab1Cd-9XyZ0" }),
    }),
    bodyRequired: true,
    answer: z.object({
      success: z.literal(true),
      data: z.object({ jti: z.string().optional(), streamname: z.string().optional() }),
    }),
    errors: [404],
  },
} satisfies Declarations;

export function tokenRoutes(deps: TokenRoutesDeps): Routes["hono"] {
  const { db, clock, tokens, revocations, tokenRecords } = deps;
  const routes = newRoutes(deps, TOKEN_ROUTES);

  routes.guarded("POST /stream/{id}/play-token", async (c, { organisation, scopeTag, who }, { body }) => {
    const { name } = await findStream(db, organisation.id, c.req.param("id"), scopeTag);
    const now = tokens.now();
    const exp = body.exp ?? now + PLAY_VALIDITY_DEFAULT_S;
    checkExpiry(exp, now);
    const issued = await tokens.issueForPlay({ streamname: name, exp, org: organisation.hash });
    await tokenRecords.add(issued, "play", { organisationId: organisation.id, who });
    const { token } = issued;
    return c.json({ token, exp, streamname: `${name}?token=${token}` });
  });

  routes.guarded("POST /webcaster/revoke", async (c, caller, { body }) => {
    const { organisation } = caller;
    const { way, text } = wayOf(body);
    await tokenRecords.flush();
    const now = clock.now();
    let data: { readonly jti: string } | { readonly streamname: string };
    if (way === "streamname") {
      const stream = await db
        .selectFrom("stream")
        .select("id")
        .where("name", "=", text)
        .where("organisation_id", "=", organisation.id)
        .where("state", "!=", "deleted")
        .executeTakeFirst();
      if (stream === undefined) throw new UnknownStream();
      // Revoking once more adds nothing to what is kept.
      const isFirst = revocations?.revisionOf(text) === 0;
      if (isFirst && revocations.countOf(organisation.hash, "stream") >= REVOKED_LIMIT) {
        const reason = `exceeds the limit of ${REVOKED_LIMIT} streams with revoked tokens; delete streams or lock this one`;
        throw new InvalidValue(way, reason);
      }
      const change = { action: "token.revoke_stream", subject: stream.id };
      await changed(db, caller, now, change, (trx) => revokeStream(trx, text, now));
      data = { streamname: text };
    } else {
      checkRevocations(revocations, organisation, way);
      const { jti, exp } = way === "jti" ? { jti: text, exp: null } : await tokens.verifyAny(text);
      const change = { action: "token.revoke", subject: jti };
      await changed(db, caller, now, change, (trx) => revokeTokenOf(trx, organisation, { jti, exp }, now));
      data = { jti };
    }
    await revocations?.refresh();
    return c.json({ success: true, data });
  });

  return routes.hono;
}

function wayOf(body: Readonly<Partial<Record<(typeof WAYS)[number], string | null | undefined>>>): {
  readonly way: (typeof WAYS)[number];
  readonly text: string;
} {
  const given = WAYS.filter((name) => body[name] !== undefined && body[name] !== null && body[name] !== "");
  const [way] = given;
  if (way === undefined) throw new ParameterRequired("token, jti or streamname");
  if (given.length > 1) throw new InvalidValue(given.join(" and "), "exclude each other");
  const text = body[way] ?? "";
  if (way === "jti" && text.length > JTI_LENGTH_LIMIT) {
    throw new InvalidValue(way, `must not be longer than ${JTI_LENGTH_LIMIT} characters`);
  }
  return { way, text };
}
