// Web tokens: signed JWTs (RFC 7519) that carry an ingest URL and a stream name to the browser broadcaster (T1–T4).
// What a token permits is decided at publish, not here.
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

/** Validity of a web token when the request gives no `exp` (T1), seconds. */
export const VALIDITY_DEFAULT_S = 604_800;
/** How far our clock may be behind the issuer's, for `nbf` only (T4), seconds. */
const NBF_LEEWAY_S = 30;
/** How long a request for the keys waits for the store, ms. */
const RELOAD_LIMIT_MS = 500;
/** The form of our key ids (RFC 7638, SHA-256): no other id is searched for in the store. */
const KID = /^[\w-]{43}$/;
/** Longest token accepted, characters: a name and a URL of 2 KiB each fit, even when JSON takes six bytes for each byte
 *  of them (33,156 characters with the default issuer). */
const TOKEN_LENGTH_LIMIT = 36_864;

/** The claims of a web token. Times are Unix seconds. */
export interface TokenClaims {
  readonly streamname: string;
  readonly ingesturl: string;
  readonly exp: number;
  readonly nbf: number;
  readonly iat: number;
  readonly iss: string;
  /** Identifies the token for revocation (T7). */
  readonly jti: string;
  /** How often the stream's tokens had been revoked when it was issued; 0 when the token does not say. */
  readonly revision: number;
  /** Hash of the organisation that issued it: it is valid only for that organisation's streams (T6). Null: issued by
   *  the operator, or before tokens carried it. */
  readonly org: string | null;
}

/** The audience of a play token, its `aud` (RFC 7519 4.1.3); a web token has none. */
const PLAYERS = "play";
/** Validity of a play token when the request gives no `exp`, seconds. */
export const PLAY_VALIDITY_DEFAULT_S = 86_400;

/** The claims of a play token. */
export type PlayClaims = Omit<TokenClaims, "ingesturl">;

/** Whether a token may authorise streams of this name: they begin with the hash of its organisation. */
export function opensStreamsOf({ org }: Pick<TokenClaims, "org">, streamname: string): boolean {
  return org === null || streamname.split("-", 1)[0] === org;
}

/** A token that was just signed, and what its record needs (token-records.ts). */
export interface IssuedToken extends Pick<PlayClaims, "streamname" | "exp" | "jti" | "revision"> {
  readonly token: string;
}

export interface Tokens {
  /** The current time in Unix seconds. */
  now(): number;
  /** A new token. `exp` null: a week from now; `nbf` null: now. */
  issue(subject: {
    readonly streamname: string;
    readonly ingesturl: string;
    readonly exp: number | null;
    readonly nbf: number | null;
    /** Hash of the requesting organisation; null for the operator. */
    readonly org: string | null;
  }): Promise<IssuedToken>;
  /** A token that lets players play a stream, until `exp` (Unix seconds). */
  issueForPlay(subject: {
    readonly streamname: string;
    readonly exp: number;
    readonly org: string;
  }): Promise<IssuedToken>;
  /** The claims of a valid web token issued by us. Throws `BadToken`; `StoreFailed` when it names an unknown key and
   *  the store does not answer. */
  verify(token: string): Promise<TokenClaims>;
  /** The claims of a valid play token issued by us. Throws `BadToken`. */
  verifyForPlay(token: string): Promise<PlayClaims>;
  /** The claims common to web and play tokens issued by us. Throws `BadToken`. */
  verifyAny(token: string): Promise<PlayClaims>;
  /** Whether a token claims to be issued by us, valid or not. */
  isOurs(token: string): boolean;
  /** The stream name that it claims to be for, valid or not: only for records of its refusal. */
  nameIn(token: string): string | null;
  /** The public keys, RFC 7517, including those another node has just created. */
  jwks(): Promise<{ readonly keys: readonly JWK[] }>;
}

export function createTokens(deps: {
  readonly keys: TokenKeys;
  readonly issuer: string;
  readonly clock: { now(): number };
  /** Absent: no token is ever revoked. */
  readonly revocations?: Pick<Revocations, "isRevoked" | "revisionOf" | "refresh">;
  /** Whether other nodes revoke tokens, too. */
  readonly isShared?: boolean;
}): Tokens {
  const { keys, issuer, clock, revocations, isShared = false } = deps;
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
    nameIn(token) {
      const { streamname } = unverified(token) ?? {};
      return typeof streamname === "string" ? streamname : null;
    },
    async jwks() {
      // While the store does not answer, the known keys are used.
      await inTime(
        RELOAD_LIMIT_MS,
        keys.reloadNow().catch(() => {}),
        undefined,
      );
      return { keys: keys.published };
    },
  };

  async function sign(
    payload: JWTPayload & { readonly streamname: string },
    { exp, nbf }: { readonly exp: number | null; readonly nbf: number | null },
  ): Promise<IssuedToken> {
    const iat = now();
    const { kid, alg, privateKey } = keys.active;
    // A token issued just after another node has revoked those of the stream is valid.
    if (isShared) await revocations?.refresh();
    const revision = revocations?.revisionOf(payload.streamname) ?? 0;
    const jti = randomUUID();
    const expires = exp ?? iat + VALIDITY_DEFAULT_S;
    const token = await new SignJWT({ ...payload, ...(revision === 0 ? {} : { revision }) })
      .setProtectedHeader({ alg, typ: "JWT", kid })
      .setIssuer(issuer)
      .setIssuedAt(iat)
      .setNotBefore(nbf ?? iat)
      .setExpirationTime(expires)
      .setJti(jti)
      .sign(privateKey);
    return { token, streamname: payload.streamname, exp: expires, jti, revision };
  }

  /** The content of a valid token issued by us: the common claims, and those that distinguish its kind. */
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
    return unverified(token)?.iss === issuer;
  }

  /** Looks for a key that another node has just created. Rejects with `StoreFailed` when the store does not answer. */
  async function findAgain(token: string, { kid, alg }: JWTHeaderParameters): Promise<CryptoKey | null> {
    if (!KID.test(kid ?? "") || !isOurs(token)) return null;
    await keys.reloadSoon();
    return keys.find(kid, alg);
  }
}

function unverified(token: string): JWTPayload | null {
  if (token.length > TOKEN_LENGTH_LIMIT) return null;
  try {
    return decodeJwt(token);
  } catch {
    return null;
  }
}

/** jose decodes leniently; RFC 7515 §2 allows no padding, no white space, nothing else. The signature does not protect
 *  its own text, so without this check one token would have many spellings. */
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

/** The claims common to all our tokens. */
function claimsOf(payload: JWTPayload): PlayClaims {
  const { streamname, exp, nbf, iat, iss, jti, revision = 0, org = null } = payload;
  if (typeof streamname !== "string") throw new BadToken("jwt malformed");
  if (exp === undefined || nbf === undefined || iat === undefined || iss === undefined || jti === undefined) {
    throw new BadToken("jwt malformed");
  }
  if (typeof revision !== "number" || (org !== null && typeof org !== "string")) throw new BadToken("jwt malformed");
  return { streamname, exp, nbf, iat, iss, jti, revision, org };
}
