// The argument `token` behind a stream name.
import { BadToken } from "../errors.ts";

/** The claims that `verify` returns for the token in these arguments; null when there is none, or it is invalid. */
export async function claimsIn<Claims>(
  custom: Uint8Array | null,
  verify: (token: string) => Promise<Claims>,
): Promise<Claims | null> {
  const token = new URLSearchParams(Buffer.from(custom ?? []).toString("latin1")).get("token");
  if (token === null) return null;
  try {
    return await verify(token);
  } catch (error) {
    if (error instanceof BadToken) return null;
    throw error;
  }
}
