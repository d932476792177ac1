// Whether a publish brings a web token that opens its stream (W22): a WHIP bearer, or the custom argument `token`.
import { BadToken } from "../errors.ts";
import { withoutArguments } from "./revocations.ts";
import { tokenIn } from "./token-argument.ts";
import { opensStreamsOf, type TokenClaims, type Tokens } from "./tokens.ts";

/** Whether a publish of stream `name` brings one. `claims`: of a bearer that was verified, or null. */
export type HoldsToken = (
  request: { readonly claims: TokenClaims | null; readonly arguments: Uint8Array | null },
  name: string,
) => Promise<boolean>;

export const requiredToken =
  (tokens: Pick<Tokens, "verify">): HoldsToken =>
  (request, name) =>
    holdsToken(tokens, request, name);

async function holdsToken(
  tokens: Pick<Tokens, "verify">,
  request: Parameters<HoldsToken>[0],
  name: string,
): Promise<boolean> {
  const claims = request.claims ?? (await claimsIn(tokens, request.arguments));
  return claims !== null && withoutArguments(claims.streamname) === name && opensStreamsOf(claims, name);
}

async function claimsIn(tokens: Pick<Tokens, "verify">, custom: Uint8Array | null): Promise<TokenClaims | null> {
  const token = tokenIn(custom);
  if (token === null) return null;
  try {
    return await tokens.verify(token);
  } catch (error) {
    if (error instanceof BadToken) return null;
    throw error;
  }
}
