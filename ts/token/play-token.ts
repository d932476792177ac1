// Whether a player presents a play token for the stream it requests: `token=` behind the stream name (R3).
import { claimsIn } from "./token-argument.ts";
import type { Tokens } from "./tokens.ts";

/** Whether these arguments contain a play token for the stream `name`. */
export type HoldsPlayToken = (custom: Uint8Array | null, name: string) => Promise<boolean>;

export const playToken =
  (tokens: Pick<Tokens, "verifyForPlay">): HoldsPlayToken =>
  async (custom, name) =>
    (await claimsIn(custom, tokens.verifyForPlay))?.streamname === name;
