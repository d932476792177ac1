// Revokes one token on behalf of an organisation, within the number that it may have revoked at a time.
import type { Kysely } from "kysely";
import { InvalidValue } from "../errors.ts";
import type { Schema } from "../store/schema.ts";
import { jtiWithin, type Revocations, revokeToken } from "./revocations.ts";
import { noteRevoked } from "./token-records.ts";

/** Tokens that an organisation may have revoked one by one before they expire, and streams whose tokens it may have
 *  revoked: every node keeps both in memory. */
export const REVOKED_LIMIT = 10_000;

interface Owner {
  readonly id: string;
  readonly hash: string;
}

/** Throws `InvalidValue` for `parameter` when the organisation has as many tokens revoked as it may. */
export function checkRevocations(
  revocations: Pick<Revocations, "countOf"> | undefined,
  { hash }: Pick<Owner, "hash">,
  parameter: string,
): void {
  if ((revocations?.countOf(hash, "jti") ?? 0) < REVOKED_LIMIT) return;
  throw new InvalidValue(parameter, `exceeds the limit of ${REVOKED_LIMIT} revoked tokens; revoke by streamname`);
}

/** `exp`: when it expires, Unix seconds; null when unknown. */
export async function revokeTokenOf(
  trx: Kysely<Schema>,
  { id, hash }: Owner,
  { jti, exp }: { readonly jti: string; readonly exp: number | null },
  now: number,
): Promise<void> {
  await revokeToken(trx, jtiWithin(hash, jti), exp, now);
  await noteRevoked(trx, id, jti, now);
}
