// Whether a publish brings a web token that opens its stream (W22): a WHIP bearer, or the custom argument `token`.
import { withoutArguments } from "./revocations.ts";
import { claimsIn } from "./token-argument.ts";
import { opensStreamsOf, type TokenClaims, type Tokens } from "./tokens.ts";

/** Whether a publish of stream `name` brings one. `claims`: of a bearer that was verified, or null. */
export type HoldsToken = (
  request: { readonly claims: TokenClaims | null; readonly arguments: Uint8Array | null },
  name: string,
) => Promise<boolean>;

export const requiredToken =
  (tokens: Pick<Tokens, "verify">): HoldsToken =>
  async (request, name) => {
    const claims = request.claims ?? (await claimsIn(request.arguments, tokens.verify));
    return claims !== null && withoutArguments(claims.streamname) === name && opensStreamsOf(claims, name);
  };
