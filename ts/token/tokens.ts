// Web tokens: signed JWTs (RFC 7519) that carry an ingest URL and a stream name to the browser broadcaster (T1–T4).
// What a token may do is decided at publish, not here.
import { randomUUID } from "node:crypto";
import {
  type CryptoKey,
  decodeJwt,
  errors,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  jwtVerify,
  SignJWT,
} from "jose";
import { BadToken, ServiceError, type TokenFault } from "../errors.ts";
import { inTime } from "../in-time.ts";
import { TOKEN_ALGORITHMS } from "./algorithms.ts";
import type { TokenKeys } from "./keys.ts";
import type { Revocations } from "./revocations.ts";

/** Validity of a web token when the caller names no `exp` (T1), seconds. */
export const VALIDITY_DEFAULT_S = 604_800;
/** How far our clock may be behind the issuer's, for `nbf` only (T4), seconds. */
const NBF_LEEWAY_S = 30;
/** How long those who ask for the keys wait for the store, ms. */
const LOOK_LIMIT_MS = 500;
/** The form of our keys' ids (RFC 7638, SHA-256): no other is looked for in the store. */
const KID = /^[\w-]{43}$/;
/** Longest token that is looked at, characters: a name and a URL of 2 KiB each fit, also when JSON makes six bytes of
 *  every one (33,156 characters with the default issuer). */
const TOKEN_LENGTH_LIMIT = 36_864;

/** What a web token says. Times are Unix seconds. */
export interface TokenClaims {
  readonly streamname: string;
  readonly ingesturl: string;
  readonly exp: number;
  readonly nbf: number;
  readonly iat: number;
  readonly iss: string;
  /** Identifies the token for revocation (T7). */
  readonly jti: string;
  /** How often the tokens of the stream had been revoked before; 0 when the token says nothing. */
  readonly revision: number;
  /** Hash of the organisation that issued it: it opens no other's streams (T6). Null: the operator's, or issued before
   *  tokens said so. */
  readonly org: string | null;
}

/** Who a play token is for, as its `aud` says (RFC 7519 4.1.3); a web token names nobody. */
const PLAYERS = "play";
/** Validity of a play token when the caller names no `exp`, seconds. */
export const PLAY_VALIDITY_DEFAULT_S = 86_400;

/** What a play token says. */
export type PlayClaims = Omit<TokenClaims, "ingesturl">;

/** Whether a token may open streams of this name: they begin with the hash of their organisation. */
export function opensStreamsOf({ org }: Pick<TokenClaims, "org">, streamname: string): boolean {
  return org === null || streamname.split("-", 1)[0] === org;
}

export interface Tokens {
  /** Unix seconds now, as tokens count them. */
  now(): number;
  /** A signed token. `exp`, `nbf`: null for a week from now, and now. */
  issue(subject: {
    readonly streamname: string;
    readonly ingesturl: string;
    readonly exp: number | null;
    readonly nbf: number | null;
    /** Hash of the organisation that asks; null for the operator. */
    readonly org: string | null;
  }): Promise<string>;
  /** A token that opens a stream to players, until `exp` (Unix seconds). */
  issueForPlay(subject: { readonly streamname: string; readonly exp: number; readonly org: string }): Promise<string>;
  /** The claims of a web token of ours that holds now. Throws `BadToken`; `StoreFailed` when it names a key that is not
   *  known here and the store does not answer. */
  verify(token: string): Promise<TokenClaims>;
  /** The claims of a play token of ours that holds now. Throws `BadToken`. */
  verifyForPlay(token: string): Promise<PlayClaims>;
  /** What web and play tokens of ours have in common. Throws `BadToken`. */
  verifyAny(token: string): Promise<PlayClaims>;
  /** Whether a text says that we issued it, whether it holds or not. */
  isOurs(token: string): boolean;
  /** The public keys, RFC 7517, with those that another node made a moment ago. */
  jwks(): Promise<{ readonly keys: readonly JWK[] }>;
}

export function createTokens(deps: {
  readonly keys: TokenKeys;
  readonly issuer: string;
  readonly clock: { now(): number };
  /** Without: nothing is ever revoked. */
  readonly revocations?: Pick<Revocations, "isRevoked" | "revisionOf">;
}): Tokens {
  const { keys, issuer, clock, revocations } = deps;
  const now = () => Math.floor(clock.now() / 1000);
  return {
    now,
    async issue({ streamname, ingesturl, exp, nbf, org }) {
      return await sign({ ingesturl, streamname, ...(org === null ? {} : { org }) }, { exp, nbf });
    },
    async issueForPlay({ streamname, exp, org }) {
      return await sign({ streamname, org, aud: PLAYERS }, { exp, nbf: null });
    },
    async verify(token) {
      const { claims, ingesturl, aud } = await held(token);
      if (typeof ingesturl !== "string" || aud !== undefined) throw new BadToken("jwt malformed");
      return { ingesturl, ...claims };
    },
    async verifyForPlay(token) {
      const { claims, aud } = await held(token);
      if (aud !== PLAYERS) throw new BadToken("jwt malformed");
      return claims;
    },
    async verifyAny(token) {
      return (await held(token)).claims;
    },
    isOurs,
    async jwks() {
      // While the store does not answer, the known ones hold.
      await inTime(
        LOOK_LIMIT_MS,
        keys.lookNow().catch(() => {}),
        undefined,
      );
      return { keys: keys.published };
    },
  };

  async function sign(
    payload: JWTPayload & { readonly streamname: string },
    { exp, nbf }: { readonly exp: number | null; readonly nbf: number | null },
  ): Promise<string> {
    const iat = now();
    const { kid, alg, privateKey } = keys.active;
    const revision = revocations?.revisionOf(payload.streamname) ?? 0;
    return await new SignJWT({ ...payload, ...(revision === 0 ? {} : { revision }) })
      .setProtectedHeader({ alg, typ: "JWT", kid })
      .setIssuer(issuer)
      .setIssuedAt(iat)
      .setNotBefore(nbf ?? iat)
      .setExpirationTime(exp ?? iat + VALIDITY_DEFAULT_S)
      .setJti(randomUUID())
      .sign(privateKey);
  }

  /** What a token of ours that holds now says: what all have, and what tells its kind. */
  async function held(token: string): Promise<{ claims: PlayClaims; ingesturl: unknown; aud: unknown }> {
    if (token.length > TOKEN_LENGTH_LIMIT || !hasStrictSignature(token)) throw new BadToken("jwt malformed");
    const payload = await verified(token);
    // The leeway below is meant for nbf; exp has none.
    if (typeof payload.exp !== "number" || payload.exp <= now()) throw new BadToken("jwt expired");
    const claims = claimsOf(payload);
    if (revocations?.isRevoked(claims)) throw new BadToken("jwt revoked");
    const { ingesturl, aud } = payload;
    return { claims, ingesturl, aud };
  }

  async function verified(token: string): Promise<JWTPayload> {
    try {
      const { payload } = await jwtVerify(
        token,
        async (header) => {
          const key = keys.find(header.kid, header.alg) ?? (await findAgain(token, header));
          if (key === null) throw new BadToken("invalid signature");
          return key;
        },
        {
          algorithms: [...TOKEN_ALGORITHMS],
          issuer,
          typ: "JWT",
          requiredClaims: ["exp", "nbf", "iat"],
          clockTolerance: NBF_LEEWAY_S,
          currentDate: new Date(clock.now()),
        },
      );
      return payload;
    } catch (error) {
      throw error instanceof ServiceError ? error : new BadToken(faultOf(error), { cause: error });
    }
  }

  function isOurs(token: string): boolean {
    if (token.length > TOKEN_LENGTH_LIMIT) return false;
    try {
      return decodeJwt(token).iss === issuer;
    } catch {
      return false;
    }
  }

  /** A key that another node made a moment ago. Rejects with `StoreFailed` when nobody can know. */
  async function findAgain(token: string, { kid, alg }: JWTHeaderParameters): Promise<CryptoKey | null> {
    if (!KID.test(kid ?? "") || !isOurs(token)) return null;
    await keys.lookAgain();
    return keys.find(kid, alg);
  }
}

/** jose decodes leniently; RFC 7515 §2 wants no padding, no white space, nothing else. The signature does not protect
 *  its own text, so without this one token would have many spellings. */
function hasStrictSignature(token: string): boolean {
  const signature = token.slice(token.lastIndexOf(".") + 1);
  return Buffer.from(signature, "base64url").toString("base64url") === signature;
}

function faultOf(error: unknown): TokenFault {
  if (error instanceof errors.JWTExpired) return "jwt expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "nbf" && error.reason === "check_failed") return "jwt not active";
    return error.claim === "iss" ? "invalid signature" : "jwt malformed";
  }
  const unsigned =
    error instanceof errors.JWSSignatureVerificationFailed ||
    error instanceof errors.JOSEAlgNotAllowed ||
    error instanceof errors.JOSENotSupported;
  return unsigned ? "invalid signature" : "jwt malformed";
}

/** What every token of ours says. */
function claimsOf(payload: JWTPayload): PlayClaims {
  const { streamname, exp, nbf, iat, iss, jti, revision = 0, org = null } = payload;
  if (typeof streamname !== "string") throw new BadToken("jwt malformed");
  if (exp === undefined || nbf === undefined || iat === undefined || iss === undefined || jti === undefined) {
    throw new BadToken("jwt malformed");
  }
  if (typeof revision !== "number" || (org !== null && typeof org !== "string")) throw new BadToken("jwt malformed");
  return { streamname, exp, nbf, iat, iss, jti, revision, org };
}
