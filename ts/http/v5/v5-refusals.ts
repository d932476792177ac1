// Notes what the v5 signalling refuses before anybody is asked: a token or key that is not valid, a parameter, a limit.
// What publishing denies is noted there.
import { BadApiKey, BadToken, StoreFailed } from "../../errors.ts";
import type { RefusalReason } from "../../publish/refusals/reasons.ts";
import type { Refusals } from "../../publish/refusals/refusals.ts";
import { lackOf } from "../../token/token-argument.ts";
import type { Tokens } from "../../token/tokens.ts";
import { isHttpError } from "../error-answers.ts";
import { type V5Code, V5Fault } from "./v5-faults.ts";

/** Runs `act`, and notes the refusal that it throws; `name`: of the stream, with arguments; null when only the token
 *  names it. */
export type NoteV5Refusal = <T>(
  asked: { readonly address: string; readonly name: string | null; readonly token: string | null },
  act: () => Promise<T>,
) => Promise<T>;

const REASONS: { readonly [code in V5Code]?: RefusalReason } = {
  101002: "bad_request",
  101003: "bad_request",
  102001: "key_not_allowed",
  103000: "token_required",
  103001: "token_required",
  103002: "token_expired",
  103003: "token_invalid",
  103004: "token_of_another_stream",
  104001: "key_not_allowed",
  104002: "key_not_allowed",
};

export function createNoteOfRefusal(deps: {
  readonly refusals: Pick<Refusals, "note">;
  readonly tokens: Pick<Tokens, "nameIn">;
}): NoteV5Refusal {
  const { refusals, tokens } = deps;
  return async ({ address, name, token }, act) => {
    try {
      return await act();
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== null) {
        const named = name === null || name === "" ? (token && tokens.nameIn(token)) || null : name;
        refusals.note({
          request: "publish",
          protocol: "v5",
          reason,
          address,
          description: (error as Error).message,
          name: named === null ? null : Buffer.from(named),
        });
      }
      throw error;
    }
  };
}

function reasonOf(error: unknown): RefusalReason | null {
  if (error instanceof BadToken) return lackOf(error);
  if (error instanceof BadApiKey) return "key_not_allowed";
  if (error instanceof StoreFailed) return "store_unavailable";
  if (error instanceof V5Fault) {
    if (error.userinfo["retry_after"] !== undefined) return "too_many_requests";
    return REASONS[error.number] ?? null;
  }
  return isHttpError(error) ? "key_not_allowed" : null;
}
