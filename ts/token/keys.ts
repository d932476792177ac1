// The keys web tokens are signed with: kept in the store, private parts sealed, imported once (T4).
// next → active → retired: the active one signs, every one verifies and is shown.
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import type { Kysely } from "kysely";
import type { Schema, TokenKeyTable } from "../store/schema.ts";
import type { SecretBox } from "../store/secret-box.ts";

/** The algorithms a web token may be signed with; nothing else is ever verified. */
export const TOKEN_ALGORITHMS = ["ES256", "RS256", "EdDSA", "Ed25519"] as const;
export type TokenAlgorithm = (typeof TOKEN_ALGORITHMS)[number];

export interface TokenKeys {
  readonly active: { readonly kid: string; readonly alg: TokenAlgorithm; readonly privateKey: CryptoKey };
  /** The public key called `kid` when it is one for `alg`, else null. */
  find(kid: string | undefined, alg: string): CryptoKey | null;
  /** The public keys as JWK (RFC 7517), newest first. */
  readonly published: readonly JWK[];
}

/** Reads the keys of the store; when none is active for `alg`, one is made and the active one of another algorithm
 *  retires. Throws `StoreUnavailable` when the key file does not open them. */
export async function loadTokenKeys(
  db: Kysely<Schema>,
  box: SecretBox,
  options: { readonly alg: TokenAlgorithm; readonly now: number },
): Promise<TokenKeys> {
  let rows = await readRows(db);
  if (!rows.some(({ state, alg }) => state === "active" && alg === options.alg)) {
    const row = await newKey(box, options.alg, options.now);
    await db.transaction().execute(async (trx) => {
      await trx.updateTable("token_key").set({ state: "retired" }).where("state", "=", "active").execute();
      await trx.insertInto("token_key").values(row).execute();
    });
    rows = await readRows(db);
  }
  const publicKeys = new Map<string, { readonly alg: string; readonly key: CryptoKey }>();
  for (const { kid, alg, public_jwk } of rows) publicKeys.set(kid, { alg, key: await imported(public_jwk, alg) });
  const row = rows.find(({ state }) => state === "active");
  if (row === undefined) throw new Error("no active token key after one was made");
  const privateKey = await imported(box.open(row.private_key, purposeOf(row.kid)), row.alg);
  return {
    active: { kid: row.kid, alg: options.alg, privateKey },
    find(kid, alg) {
      const known = kid === undefined ? undefined : publicKeys.get(kid);
      return known?.alg === alg ? known.key : null;
    },
    published: rows.map(({ kid, alg, public_jwk }) => ({ ...JSON.parse(public_jwk), kid, alg, use: "sig" })),
  };
}

async function readRows(db: Kysely<Schema>): Promise<TokenKeyTable[]> {
  return await db.selectFrom("token_key").selectAll().orderBy("created_at", "desc").orderBy("kid").execute();
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
    state: "active",
    created_at: now,
  };
}

async function imported(jwk: string, alg: string): Promise<CryptoKey> {
  const key = await importJWK(JSON.parse(jwk), alg);
  if (key instanceof Uint8Array) throw new Error("a token key is no secret key");
  return key;
}

function purposeOf(kid: string): string {
  return `token_key ${kid}`;
}
