// The web token with which a publish opens its stream (W22): a WHIP bearer, or the custom argument `token`.
import { withoutArguments } from "./revocations.ts";
import { claimsIn } from "./token-argument.ts";
import { opensStreamsOf, type TokenClaims, type Tokens } from "./tokens.ts";

/** What the token of a publish of stream `name` claims; null when none opens it. `claims`: of a bearer that was
 *  verified, or null. */
export type TokenOf = (
  request: { readonly claims: TokenClaims | null; readonly arguments: Uint8Array | null },
  name: string,
) => Promise<TokenClaims | null>;

export const requiredToken =
  (tokens: Pick<Tokens, "verify">): TokenOf =>
  async (request, name) => {
    const claims = request.claims ?? (await claimsIn(request.arguments, tokens.verify));
    const opens = claims !== null && withoutArguments(claims.streamname) === name && opensStreamsOf(claims, name);
    return opens ? claims : null;
  };
