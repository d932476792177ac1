// The web token that authorises a publish of a stream (W22): a WHIP bearer token, or the custom argument `token`.
import { withoutArguments } from "./revocations.ts";
import { claimsIn, type TokenLack } from "./token-argument.ts";
import { opensStreamsOf, type TokenClaims, type Tokens } from "./tokens.ts";

/** The claims of the token of a publish of stream `name`, or why no token authorises it. `claims`: those of a verified
 *  bearer token, or null. */
export type TokenOf = (
  request: { readonly claims: TokenClaims | null; readonly arguments: Uint8Array | null },
  name: string,
) => Promise<TokenClaims | TokenLack>;

export const requiredToken =
  (tokens: Pick<Tokens, "verify">): TokenOf =>
  async (request, name) => {
    const claims = request.claims ?? (await claimsIn(request.arguments, tokens.verify));
    if (typeof claims === "string") return claims;
    const opens = withoutArguments(claims.streamname) === name && opensStreamsOf(claims, name);
    return opens ? claims : "token_of_another_stream";
  };
