// The argument `token` behind a stream name, and why a token does not open a stream.
import { BadToken, type TokenFault } from "../errors.ts";

/** Why there are no claims: no token, or one that is of no use. */
export type TokenLack =
  | "token_required"
  | "token_invalid"
  | "token_expired"
  | "token_revoked"
  | "token_of_another_stream";

const LACKS: Readonly<Record<TokenFault, TokenLack>> = {
  "jwt expired": "token_expired",
  "jwt not active": "token_invalid",
  "invalid signature": "token_invalid",
  "jwt malformed": "token_invalid",
  "jwt revoked": "token_revoked",
};

export const lackOf = ({ fault }: BadToken): TokenLack => LACKS[fault];

/** The claims that `verify` returns for the token in these arguments, or why there are none. */
export async function claimsIn<Claims extends object>(
  custom: Uint8Array | null,
  verify: (token: string) => Promise<Claims>,
): Promise<Claims | TokenLack> {
  const token = new URLSearchParams(Buffer.from(custom ?? []).toString("latin1")).get("token");
  if (token === null) return "token_required";
  try {
    return await verify(token);
  } catch (error) {
    if (error instanceof BadToken) return lackOf(error);
    throw error;
  }
}
