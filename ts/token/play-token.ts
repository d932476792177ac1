// Whether a player presents a play token for the stream it requests: `token=` behind the stream name (R3).
import { claimsIn, type TokenLack } from "./token-argument.ts";
import type { Tokens } from "./tokens.ts";

/** Null when these arguments contain a play token for the stream `name`, else why not. */
export type PlayTokenLack = (custom: Uint8Array | null, name: string) => Promise<TokenLack | null>;

/** `used`: called with the jti of each token that authorises a play. */
export const playToken =
  (tokens: Pick<Tokens, "verifyForPlay">, used: (jti: string) => void): PlayTokenLack =>
  async (custom, name) => {
    const claims = await claimsIn(custom, tokens.verifyForPlay);
    if (typeof claims === "string") return claims;
    if (claims.streamname !== name) return "token_of_another_stream";
    used(claims.jti);
    return null;
  };
