// The life cycle of token keys in the store: next → active → retired → deleted (T4). A key is published as
// `next` long before it signs and as `retired` for as long as a token signed with it may live, so that no
// verifier meets an unpublished key. The first key of a store, a key for another algorithm and a key
// requested to sign immediately sign before they are published: nodes read the store for a key they do not
// know (keys.ts), all other verifiers may have a cached key set until it expires.
import { calculateJwkThumbprint, exportJWK, generateKeyPair } from "jose";
import type { Kysely } from "kysely";
import type { Schema, TokenKeyTable } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";
import { TOKEN_ALGORITHMS, type TokenAlgorithm } from "./algorithms.ts";

const DAY_MS = 86_400_000;
/** How long a key must have been published before it signs: twice the cache lifetime of the key set. */
export const SHOWN_AT_LEAST_MS = 600_000;
/** A retired key is kept for the longest life of a token (T1) plus a day. */
const RETIRED_LIMIT_MS = 366 * DAY_MS;

export interface RotationRequest {
  /** Algorithm of new keys. */
  readonly alg: TokenAlgorithm;
  /** `configured`: an active key for another algorithm is replaced; `active`: the active key's algorithm takes
   *  precedence over `alg`, so that nodes that are configured differently do not replace each other's keys. */
  readonly algorithm?: "configured" | "active";
  /** Epoch ms. */
  readonly now: number;
  /** Age at which the active key is replaced, days; 0: never. */
  readonly rotateDays: number;
  /** `when_shown`: replaces the active key if the next one has been published long enough; `at_once`: in any case. */
  readonly when?: "when_shown" | "at_once";
}

/** The result of a rotation; `kid` is the active key's. */
export type Rotated =
  | { readonly outcome: "unchanged" | "rotated"; readonly kid: string }
  /** The next key has not been published long enough: it may sign at `at`, epoch ms. */
  | { readonly outcome: "too_early"; readonly kid: string; readonly at: number };

/** Brings the keys into their proper state: one active of `alg`, one next, none too old. Throws `StoreUnavailable` and
 *  changes nothing when `box` cannot open the existing keys. */
export async function rotateTokenKeys(db: Kysely<Schema>, box: SecretBox, rotation: RotationRequest): Promise<Rotated> {
  const { now } = rotation;
  return await db.transaction().execute(async (trx) => {
    const rows = await trx.selectFrom("token_key").selectAll().execute();
    // A key sealed with another key file could not be opened by any other node.
    for (const { kid, private_key } of rows) if (private_key !== "") box.open(private_key, purposeOf(kid));
    const active = rows.find(({ state }) => state === "active");
    const present = TOKEN_ALGORITHMS.find((known) => known === active?.alg);
    const alg = rotation.algorithm === "active" ? (present ?? rotation.alg) : rotation.alg;
    let next = rows.find((row) => row.state === "next" && row.alg === alg);
    let outcome: Rotated["outcome"] = "unchanged";
    let kid = active?.kid ?? "";
    const shownFrom = (next?.created_at ?? now) + SHOWN_AT_LEAST_MS;

    async function replace(): Promise<void> {
      await trx
        .updateTable("token_key")
        .set({ state: "retired", retired_at: now, private_key: "" }) // it signs no more
        .where("state", "=", "active")
        .execute();
      const successor = next ?? (await newKey(box, alg, now));
      const change = { state: "active" as const, activated_at: now };
      if (next === undefined) {
        await trx
          .insertInto("token_key")
          .values({ ...successor, ...change })
          .execute();
      } else {
        await trx.updateTable("token_key").set(change).where("kid", "=", next.kid).execute();
      }
      next = undefined;
      kid = successor.kid;
      outcome = "rotated";
    }

    if (active === undefined || active.alg !== alg || rotation.when === "at_once") await replace();
    else {
      const age = now - (active.activated_at ?? active.created_at);
      const isOld = rotation.rotateDays > 0 && age >= rotation.rotateDays * DAY_MS;
      const isWanted = rotation.when === "when_shown";
      if ((isOld || isWanted) && next !== undefined && now >= shownFrom) await replace();
      else if (isWanted) outcome = "too_early";
    }
    if (next === undefined)
      await trx
        .insertInto("token_key")
        .values(await newKey(box, alg, now))
        .execute();
    await trx.deleteFrom("token_key").where("state", "=", "next").where("alg", "!=", alg).execute();
    await trx
      .updateTable("token_key")
      .set({ retired_at: now })
      .where("state", "=", "retired")
      .where("retired_at", "is", null)
      .execute();
    await trx
      .deleteFrom("token_key")
      .where("state", "=", "retired")
      .where("retired_at", "<", now - RETIRED_LIMIT_MS)
      .execute();
    return outcome === "too_early" ? { outcome, kid, at: shownFrom } : { outcome, kid };
  });
}

/** Deletes a retired or next key immediately: tokens it signed become invalid. False when there is no such
 *  key. */
export async function forgetTokenKey(db: Kysely<Schema>, kid: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("token_key")
    .where("kid", "=", kid)
    .where("state", "!=", "active")
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

async function newKey(box: SecretBox, alg: TokenAlgorithm, now: number): Promise<TokenKeyTable> {
  const pair = await generateKeyPair(alg, { extractable: true });
  const publicJwk = await exportJWK(pair.publicKey);
  const kid = await calculateJwkThumbprint(publicJwk); // RFC 7638
  return {
    kid,
    alg,
    public_jwk: JSON.stringify(publicJwk),
    private_key: box.seal(JSON.stringify(await exportJWK(pair.privateKey)), purposeOf(kid)),
    state: "next",
    created_at: now,
    activated_at: null,
    retired_at: null,
  };
}

/** The purpose for which a private key is sealed. */
export function purposeOf(kid: string): string {
  return `token_key ${kid}`;
}
