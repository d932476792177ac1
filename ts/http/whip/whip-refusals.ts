// Notes the offers that the WHIP endpoint refuses before anybody is asked: what the request lacks, a token that is not
// valid, a limit. What publishing and the media core refuse is noted where it is decided.
import type { Context } from "hono";
import { BadToken, StoreFailed } from "../../errors.ts";
import type { RefusalReason } from "../../publish/refusals/reasons.ts";
import type { Refusals } from "../../publish/refusals/refusals.ts";
import { lackOf } from "../../token/token-argument.ts";
import type { Tokens } from "../../token/tokens.ts";
import { type WhipFault, WhipProblem } from "./whip-problems.ts";

const REASONS: { readonly [fault in WhipFault]?: RefusalReason } = {
  parameter_required: "bad_request",
  bad_parameter: "bad_request",
  unsupported_media_type: "offer_refused",
  token_mismatch: "token_of_another_stream",
  too_many_requests: "too_many_requests",
  overloaded: "overloaded",
};

/** Runs `read`; notes the refusal that it throws, under the name that the offer was for. */
export async function notingRefusals<T>(
  deps: { readonly refusals: Pick<Refusals, "note">; readonly tokens: Pick<Tokens, "nameIn"> },
  request: { readonly c: Context; readonly address: string; readonly name: Uint8Array | null },
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const { c, address } = request;
    const reason = reasonOf(error);
    if (reason !== null) {
      const bearer = bearerOf(c.req.header("authorization"));
      const claimed = bearer === null ? null : deps.tokens.nameIn(bearer);
      const name = request.name ?? (claimed === null ? null : Buffer.from(claimed));
      const description = error instanceof WhipProblem ? error.detail : (error as Error).message;
      deps.refusals.note({ request: "publish", protocol: "whip", reason, name, address, description });
    }
    throw error instanceof BadToken ? WhipProblem.fault("bad_token", error.fault) : error;
  }
}

function reasonOf(error: unknown): RefusalReason | null {
  if (error instanceof BadToken) return lackOf(error);
  if (error instanceof StoreFailed) return "store_unavailable";
  return error instanceof WhipProblem ? (REASONS[error.code as WhipFault] ?? null) : null;
}

/** The bearer token of a request; null for none. */
export const bearerOf = (authorization: string | undefined): string | null =>
  /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1] ?? null;
