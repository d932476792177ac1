// Whether a player presents a play token for the stream it requests: `token=` behind the stream name (R3).
import { claimsIn, type TokenLack } from "./token-argument.ts";
import type { Tokens } from "./tokens.ts";

/** Null when these arguments contain a play token for the stream `name`, else why not. */
export type PlayTokenLack = (custom: Uint8Array | null, name: string) => Promise<TokenLack | null>;

export const playToken =
  (tokens: Pick<Tokens, "verifyForPlay">): PlayTokenLack =>
  async (custom, name) => {
    const claims = await claimsIn(custom, tokens.verifyForPlay);
    if (typeof claims === "string") return claims;
    return claims.streamname === name ? null : "token_of_another_stream";
  };
