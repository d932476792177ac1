// The web token service as its callers see it: exact statuses and bodies (docs/broadcasting.md; T1–T5), and
// that no hostile token is ever accepted (RFC 7515, RFC 7519, RFC 8725).
import { webcrypto } from "node:crypto";
import {
  CompactEncrypt,
  type CryptoKey,
  createLocalJWKSet,
  exportJWK,
  exportSPKI,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
  jwtVerify,
} from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Answer, type Call, type Gateway, openGateway, START_MS } from "../../support/gateway.ts";

const NOW = START_MS / 1000;
const WEEK_S = 604_800;
const YEAR_S = 365 * 86_400;
const SUBJECT = { streamname: "Ab1Cd-9XyZ0?passcode=s3cret", ingesturl: "rtmp://in.example:1935/live" };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const ANY_ORIGIN = "access-control-allow-origin";

let gateway: Gateway;

beforeAll(async () => {
  gateway = await openGateway();
});

beforeEach(() => {
  gateway.clock.ms = START_MS;
});

afterAll(() => gateway.close());

const failure = (errorCode: number, message: string) => ({ success: false, errorCode, message });
const seen = ({ status, body }: Answer) => ({ status, body });
const create = (body: unknown, options: Call = {}) => gateway.call("POST", "/webcaster", { ...options, body });
const verify = (token: unknown) => gateway.call("POST", "/webcaster/verify", { key: null, body: { token } });
const refused = (message: string) => ({ status: 403, body: failure(1002, message) });

async function issue(times: { readonly exp?: number; readonly nbf?: number } = {}): Promise<string> {
  const { status, body } = await create({ ...SUBJECT, ...times });
  expect(status).toBe(200);
  return (body as { data: { token: string } }).data.token;
}

const keysOf = async () => (await gateway.call("GET", "/.well-known/jwks.json", { key: null })).body as JSONWebKeySet;

function decoded(token: string): { readonly header: unknown; readonly claims: Record<string, unknown> } {
  const [header, claims] = token.split(".").map((part) => Buffer.from(part, "base64url").toString());
  return { header: JSON.parse(header ?? ""), claims: JSON.parse(claims ?? "") };
}

describe("a new token", () => {
  test("is the only content of its answer, and valid for a week from now", async () => {
    const answer = await create(SUBJECT);
    const { token } = (answer.body as { data: { token: string } }).data;
    expect(seen(answer)).toStrictEqual({ status: 200, body: { success: true, data: { token } } });
    const { header, claims } = decoded(token);
    expect(header).toStrictEqual({ alg: "ES256", typ: "JWT", kid: gateway.tokenKeys.active.kid });
    const jti = expect.stringMatching(UUID);
    const times = { iat: NOW, nbf: NOW, exp: NOW + WEEK_S };
    expect(claims).toStrictEqual({ ...SUBJECT, ...times, iss: "headgate", jti, org: gateway.organisation.hash });
  });

  test.each([
    ["the next second", { exp: NOW + 1 }],
    ["365 days", { exp: NOW + YEAR_S }],
    ["a past nbf", { nbf: 0 }],
    ["a future nbf", { nbf: NOW + WEEK_S - 1 }],
    ["both", { nbf: NOW + 10, exp: NOW + 11 }],
  ])("takes its times from the body: %s", async (_, times) => {
    expect(decoded(await issue(times)).claims).toMatchObject({ nbf: NOW, exp: NOW + WEEK_S, iat: NOW, ...times });
  });

  test("accepts null for times that are not given, and ignores unknown members", async () => {
    const { body } = await create({ ...SUBJECT, exp: null, nbf: null, iss: "me", jti: "mine", admin: true });
    const { claims } = decoded((body as { data: { token: string } }).data.token);
    expect(claims).toMatchObject({ exp: NOW + WEEK_S, nbf: NOW, iss: "headgate", jti: expect.stringMatching(UUID) });
    expect(claims).not.toHaveProperty("admin");
  });

  test("differs from every other", async () => {
    expect(await issue()).not.toBe(await issue());
  });

  test("may be requested by a user, whatever the content type", async () => {
    const call = { key: gateway.keys.user, headers: { "content-type": "text/plain" } };
    expect((await create(SUBJECT, call)).status).toBe(200);
  });

  test.each<[what: string, body: unknown, code: number, message: string]>([
    ["no body", "", 1000, "Parameter required: streamname"],
    ["no streamname", { ingesturl: "x" }, 1000, "Parameter required: streamname"],
    ["an empty streamname", { ...SUBJECT, streamname: "" }, 1000, "Parameter required: streamname"],
    ["a null streamname", { ...SUBJECT, streamname: null }, 1000, "Parameter required: streamname"],
    ["no ingesturl", { streamname: "x" }, 1000, "Parameter required: ingesturl"],
    ["a number as streamname", { ...SUBJECT, streamname: 1 }, 1003, "Wrong data type: streamname"],
    ["a list as body", [SUBJECT], 1003, "Wrong data type: body"],
    ["text as exp", { ...SUBJECT, exp: String(NOW + 60) }, 1003, "Wrong data type: exp"],
    ["a date as exp", { ...SUBJECT, exp: "2026-02-01" }, 1003, "Wrong data type: exp"],
    ["a fraction as exp", { ...SUBJECT, exp: NOW + 0.5 }, 1003, "Wrong data type: exp"],
    ["a truth as exp", { ...SUBJECT, exp: true }, 1003, "Wrong data type: exp"],
    ["an exp beyond 2^53", { ...SUBJECT, exp: 2 ** 53 }, 1003, "Wrong data type: exp"],
    ["text as nbf", { ...SUBJECT, nbf: "0" }, 1003, "Wrong data type: nbf"],
    ["an exp of now", { ...SUBJECT, exp: NOW }, 9002, "Invalid value: exp must be in the future"],
    ["an exp in milliseconds", { ...SUBJECT, exp: START_MS }, 9002, "Invalid value: exp must be within 365 days"],
    ["an exp after a year", { ...SUBJECT, exp: NOW + YEAR_S + 1 }, 9002, "Invalid value: exp must be within 365 days"],
    ["nbf at exp", { ...SUBJECT, exp: NOW + 9, nbf: NOW + 9 }, 9002, "Invalid value: nbf must be before exp"],
    ["nbf after a week", { ...SUBJECT, nbf: NOW + WEEK_S }, 9002, "Invalid value: nbf must be before exp"],
    [
      "2049 bytes of name",
      { ...SUBJECT, streamname: `a${"é".repeat(1_024)}` },
      9002,
      "Invalid value: streamname must not be longer than 2048 bytes",
    ],
    [
      "half a character",
      { ...SUBJECT, ingesturl: "\ud800" },
      9002,
      "Invalid value: ingesturl must be well-formed Unicode",
    ],
    ["no JSON", "streamname=a&ingesturl=b", 9000, "Malformed JSON"],
  ])("is refused for %s", async (_, body, code, message) => {
    expect(seen(await create(body))).toStrictEqual({ status: 400, body: failure(code, message) });
  });

  test("is refused in the same way for a missing and a wrong key, before the body is read", async () => {
    const body = failure(1001, "Provided APIKey is not valid");
    for (const key of [null, "", "wrong", `${gateway.keys.user}x`]) {
      expect(seen(await create(SUBJECT, { key }))).toStrictEqual({ status: 403, body });
      expect(seen(await create("{", { key }))).toStrictEqual({ status: 403, body });
    }
  });

  test("is refused to a readonly key", async () => {
    const body = failure(1001, "Provided APIKey may not create web tokens");
    expect(seen(await create(SUBJECT, { key: gateway.keys.readonly }))).toStrictEqual({ status: 403, body });
  });

  test("is nowhere in the log, and neither is its stream name", async () => {
    const token = await issue();
    await verify(token);
    expect(gateway.log()).toContain("request answered");
    expect(gateway.log()).not.toContain(token.split(".")[2]);
    expect(gateway.log()).not.toContain("s3cret");
  });
});

describe("verification", () => {
  test("of a valid token needs no key and echoes the token", async () => {
    const token = await issue();
    expect(seen(await verify(token))).toStrictEqual({ status: 200, body: { success: true, data: { token } } });
  });

  test("succeeds until the second of exp, without leeway", async () => {
    const token = await issue({ exp: NOW + 60 });
    gateway.clock.ms = (NOW + 60) * 1000 - 1;
    expect((await verify(token)).status).toBe(200);
    gateway.clock.ms += 1;
    expect(seen(await verify(token))).toStrictEqual(refused("jwt expired"));
  });

  test("begins 30 seconds before nbf", async () => {
    const token = await issue({ nbf: NOW + 31 });
    expect(seen(await verify(token))).toStrictEqual(refused("jwt not active"));
    gateway.clock.ms += 1000;
    expect((await verify(token)).status).toBe(200);
  });

  test("of an expired token with a bad signature reports the signature", async () => {
    const [header, payload] = (await issue({ exp: NOW + 1 })).split(".");
    const [, , signature] = (await issue()).split(".");
    gateway.clock.ms += 2_000;
    expect(seen(await verify(`${header}.${payload}.${signature}`))).toStrictEqual(refused("invalid signature"));
  });

  test("accepts the longest possible token", async () => {
    const longest = "\u0001".repeat(2_048);
    const { body } = await create({ streamname: longest, ingesturl: longest, exp: NOW + YEAR_S });
    expect((await verify((body as { data: { token: string } }).data.token)).status).toBe(200);
  });

  test.each<[what: string, body: unknown, code: number, message: string]>([
    ["no body", "", 1000, "Parameter required: token"],
    ["no token", { jwt: "x" }, 1000, "Parameter required: token"],
    ["null", { token: null }, 1000, "Parameter required: token"],
    ["an empty token", { token: "" }, 1000, "Parameter required: token"],
    ["a number", { token: 1 }, 1003, "Wrong data type: token"],
    ["a truth", { token: true }, 1003, "Wrong data type: token"],
    ["a list", { token: ["a.b.c"] }, 1003, "Wrong data type: token"],
    ["an object", { token: { payload: "a", signatures: [] } }, 1003, "Wrong data type: token"],
    ["a list as body", ["a.b.c"], 1003, "Wrong data type: body"],
    ["no JSON", "token=a.b.c", 9000, "Malformed JSON"],
  ])("of %s is a bad request", async (_, body, code, message) => {
    const answer = await gateway.call("POST", "/webcaster/verify", { key: null, body });
    expect(seen(answer)).toStrictEqual({ status: 400, body: failure(code, message) });
    expect(answer.headers.get(ANY_ORIGIN)).toBe("*");
  });
});

describe("the signing keys", () => {
  test.each(["ES256", "RS256", "EdDSA", "Ed25519"])(
    "of %s let jose verify a token with the published keys alone",
    async (alg) => {
      const other = await openGateway({ HEADGATE_TOKEN_ALG: alg, HEADGATE_TOKEN_ISSUER: "tokens.example" });
      const { body } = await other.call("POST", "/webcaster", { body: SUBJECT });
      const published = await other.call("GET", "/.well-known/jwks.json", { key: null });
      await other.close();
      const keys = createLocalJWKSet(published.body as JSONWebKeySet);
      const { payload, protectedHeader } = await jwtVerify((body as { data: { token: string } }).data.token, keys, {
        algorithms: [alg],
        issuer: "tokens.example",
        currentDate: new Date(START_MS),
      });
      expect(payload).toMatchObject(SUBJECT);
      expect(protectedHeader).toStrictEqual({ alg, typ: "JWT", kid: other.tokenKeys.active.kid });
    },
  );

  test("are published without their private parts, and may be cached briefly", async () => {
    const answer = await gateway.call("GET", "/.well-known/jwks.json", { key: null });
    const text = expect.stringMatching(/^[\w-]{43}$/);
    const key = { kty: "EC", crv: "P-256", x: text, y: text, kid: text, alg: "ES256", use: "sig" };
    // The active key and the next one: every key is published before it is used.
    expect(seen(answer)).toStrictEqual({ status: 200, body: { keys: [key, key] } });
    expect(answer.headers.get("cache-control")).toBe("public, max-age=300");
  });

  test("are unreadable in the store", async () => {
    const { private_key } = await gateway.db.selectFrom("token_key").selectAll().executeTakeFirstOrThrow();
    const bytes = private_key + Buffer.from(private_key, "base64url").toString("latin1");
    expect(bytes).not.toMatch(/"d"|"kty"|P-256/);
  });

  test("still verify after another algorithm signs, and after a restart", async () => {
    const first = await openGateway();
    const old = ((await first.call("POST", "/webcaster", { body: SUBJECT })).body as { data: { token: string } }).data;
    const second = await first.restart({ HEADGATE_TOKEN_ALG: "Ed25519" });
    const fresh = await second.call("POST", "/webcaster", { body: SUBJECT });
    const verified = await second.call("POST", "/webcaster/verify", { body: old });
    const keys = (await second.call("GET", "/.well-known/jwks.json")).body as JSONWebKeySet;
    await second.close();
    expect(decoded((fresh.body as { data: { token: string } }).data.token).header).toMatchObject({ alg: "Ed25519" });
    expect(seen(verified)).toStrictEqual({ status: 200, body: { success: true, data: old } });
    expect(keys.keys.map(({ alg }) => alg).toSorted()).toEqual(["ES256", "Ed25519", "Ed25519"]);
  });
});

describe("browsers of other origins", () => {
  const headers = { origin: "https://page.example", "access-control-request-method": "POST" };
  const asking = { ...headers, "access-control-request-headers": "content-type" };

  test("may verify, and read why a token is refused", async () => {
    const preflight = await gateway.call("OPTIONS", "/webcaster/verify", { key: null, headers: asking });
    expect(preflight).toMatchObject({ status: 204, body: null });
    expect(preflight.headers.get(ANY_ORIGIN)).toBe("*");
    expect(preflight.headers.get("access-control-allow-methods")).toBe("POST");
    expect(preflight.headers.get("access-control-allow-headers")).toBe("content-type");
    expect(preflight.headers.get("access-control-allow-credentials")).toBeNull();
    for (const token of [await issue(), "bad"]) expect((await verify(token)).headers.get(ANY_ORIGIN)).toBe("*");
  });

  test("may not create", async () => {
    const preflight = await gateway.call("OPTIONS", "/webcaster", { key: null, headers: asking });
    expect(seen(preflight)).toStrictEqual({ status: 405, body: failure(9405, "Method not allowed") });
    const created = await create(SUBJECT, { headers: { origin: headers.origin } });
    for (const answer of [preflight, created, await create({}, { headers })]) {
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
  });

  test("may read that a token is too large to verify", async () => {
    const body = { token: "a".repeat(70_000) };
    const answer = await gateway.call("POST", "/webcaster/verify", {
      key: null,
      body,
      headers: { origin: headers.origin },
    });
    expect([answer.status, answer.headers.get(ANY_ORIGIN)]).toEqual([413, "*"]);
  });
});

describe("a hostile token is never accepted:", () => {
  /** What an attacker has (everything public, and keys of their own), and what only a leak would provide: our
   *  own key. */
  interface Arms {
    readonly genuine: string;
    readonly header: { readonly alg: string; readonly typ: string; readonly kid: string };
    readonly claims: Readonly<Record<string, unknown>>;
    readonly publicJwk: JWK;
    readonly pem: string;
    readonly theirJwk: JWK;
    /** Signed by a P-256 key of the attacker's. */
    theirs(header: unknown, payload?: unknown): Promise<string>;
    /** Signed by our own key: only the content is wrong. */
    ours(header: unknown, payload?: unknown): Promise<string>;
    hmac(secret: string, header?: object, hash?: string): Promise<string>;
    /** The genuine token with some of its parts replaced. */
    altered(parts: {
      readonly header?: unknown;
      readonly payload?: unknown;
      readonly signature?: string | undefined;
    }): string;
  }
  let arms: Arms;

  function segment(value: unknown): string {
    const bytes = value instanceof Uint8Array ? value : typeof value === "string" ? value : JSON.stringify(value);
    return Buffer.from(bytes).toString("base64url");
  }
  const ECDSA = { name: "ECDSA", hash: "SHA-256" };

  async function signed(algorithm: object, key: CryptoKey, header: unknown, payload: unknown): Promise<string> {
    const input = `${segment(header)}.${segment(payload)}`;
    const bytes = await webcrypto.subtle.sign(algorithm as typeof ECDSA, key, Buffer.from(input));
    return `${input}.${Buffer.from(bytes).toString("base64url")}`;
  }

  beforeAll(async () => {
    const genuine = await issue();
    const { header, claims } = decoded(genuine) as Pick<Arms, "header" | "claims">;
    const their = await generateKeyPair("ES256", { extractable: true });
    const publicJwk = (await keysOf()).keys.find(({ kid }) => kid === header.kid) as JWK;
    const publicKey = (await importJWK(publicJwk, "ES256", { extractable: true })) as CryptoKey;
    arms = {
      genuine,
      header,
      claims,
      publicJwk,
      pem: await exportSPKI(publicKey),
      theirJwk: await exportJWK(their.publicKey),
      theirs: (head, payload = claims) => signed(ECDSA, their.privateKey, head, payload),
      ours: (head, payload = claims) => signed(ECDSA, gateway.tokenKeys.active.privateKey, head, payload),
      async hmac(secret, head = { ...header, alg: "HS256" }, hash = "SHA-256") {
        const key = await webcrypto.subtle.importKey("raw", Buffer.from(secret), { name: "HMAC", hash }, false, [
          "sign",
        ]);
        return await signed({ name: "HMAC" }, key, head, claims);
      },
      altered(parts) {
        const [head, payload, signature] = genuine.split(".");
        const first = parts.header === undefined ? head : segment(parts.header);
        const second = parts.payload === undefined ? payload : segment(parts.payload);
        return `${first}.${second}.${parts.signature ?? signature}`;
      },
    };
  });

  const signatureOf = (token: string) => Buffer.from(token.split(".")[2] ?? "", "base64url");
  /** ASN.1 form of a signature that JWS requires as r ‖ s. */
  function der(signature: Buffer): Buffer {
    const integer = (bytes: Buffer) => Buffer.concat([Buffer.from([2, 33, 0]), bytes]);
    const body = Buffer.concat([integer(signature.subarray(0, 32)), integer(signature.subarray(32))]);
    return Buffer.concat([Buffer.from([0x30, body.length]), body]);
  }
  const without = (claims: Readonly<Record<string, unknown>>, name: string) =>
    Object.fromEntries(Object.entries(claims).filter(([key]) => key !== name));
  async function foreign(alg: "RS256" | "PS256" | "ES384" | "Ed25519"): Promise<string> {
    const { privateKey } = await generateKeyPair(alg);
    const hash = alg === "ES384" ? "SHA-384" : "SHA-256";
    const algorithm = { name: privateKey.algorithm.name, hash, saltLength: 32 };
    return await signed(algorithm, privateKey, { ...arms.header, alg }, arms.claims);
  }
  async function encrypted(): Promise<string> {
    const { kty, crv, x, y } = arms.publicJwk as JWK & { kty: string };
    const key = await importJWK({ kty, crv, x, y } as JWK, "ECDH-ES");
    const header = { ...arms.header, alg: "ECDH-ES", enc: "A256GCM" };
    return await new CompactEncrypt(Buffer.from(JSON.stringify(arms.claims))).setProtectedHeader(header).encrypt(key);
  }

  const SIGNATURE = "invalid signature";
  const MALFORMED = "jwt malformed";
  const ours = (claims: (from: Arms["claims"]) => unknown) => () => arms.ours(arms.header, claims(arms.claims));
  const resigned = (signature: (genuine: Buffer) => Uint8Array) => () =>
    arms.altered({ signature: segment(signature(signatureOf(arms.genuine))) });
  const kid = (value: unknown) => () => arms.theirs({ ...arms.header, kid: value });
  const n = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";

  type Vector = [what: string, token: () => string | Promise<string>, message: string];
  test.each<Vector>([
    // no signature at all
    ["alg none", () => arms.altered({ header: { ...arms.header, alg: "none" }, signature: "" }), SIGNATURE],
    ["alg NONE", () => arms.altered({ header: { ...arms.header, alg: "NONE" }, signature: "" }), SIGNATURE],
    ["alg none with a signature", () => arms.altered({ header: { ...arms.header, alg: "none" } }), SIGNATURE],
    ["alg none without typ or kid", () => `${segment({ alg: "none" })}.${segment(arms.claims)}.`, SIGNATURE],
    ["no alg", () => arms.ours({ typ: "JWT", kid: arms.header.kid }), MALFORMED],
    ["an empty alg", () => arms.ours({ ...arms.header, alg: "" }), MALFORMED],
    ["a list of algs", () => arms.ours({ ...arms.header, alg: ["ES256"] }), MALFORMED],
    ["alg in lower case", () => arms.ours({ ...arms.header, alg: "es256" }), SIGNATURE],
    // another algorithm
    ["HS256 with the public key in PEM", () => arms.hmac(arms.pem), SIGNATURE],
    ["HS256 with the published key as JSON", () => arms.hmac(JSON.stringify(arms.publicJwk)), SIGNATURE],
    ["HS256 with the key's coordinate", () => arms.hmac(String(arms.publicJwk.x)), SIGNATURE],
    ["HS512 with the public key", () => arms.hmac(arms.pem, { ...arms.header, alg: "HS512" }, "SHA-512"), SIGNATURE],
    ["HMAC called ES256", () => arms.hmac(arms.pem, arms.header), SIGNATURE],
    ["RS256 of another key", () => foreign("RS256"), SIGNATURE],
    ["PS256 of another key", () => foreign("PS256"), SIGNATURE],
    ["ES384 of another key", () => foreign("ES384"), SIGNATURE],
    ["Ed25519 of another key", () => foreign("Ed25519"), SIGNATURE],
    ["RS256 by name only", () => arms.ours({ ...arms.header, alg: "RS256" }), SIGNATURE],
    // another key
    ["our kid, their key", () => arms.theirs(arms.header), SIGNATURE],
    ["another kid", kid("other"), SIGNATURE],
    ["no kid", () => arms.theirs({ alg: "ES256", typ: "JWT" }), SIGNATURE],
    ["no kid, our key", () => arms.ours({ alg: "ES256", typ: "JWT" }), SIGNATURE],
    ["a kid that is a path", kid("../../../../dev/null"), SIGNATURE],
    ["a kid that is SQL", kid("' union select public_jwk from token_key --"), SIGNATURE],
    ["a kid every object has", kid("__proto__"), SIGNATURE],
    ["a kid that is a number", kid(0), SIGNATURE],
    ["a kid that is a list", () => arms.theirs({ ...arms.header, kid: [arms.header.kid] }), SIGNATURE],
    ["their key in jwk", () => arms.theirs({ ...arms.header, jwk: arms.theirJwk }), SIGNATURE],
    ["their key in jwk, no kid", () => arms.theirs({ alg: "ES256", typ: "JWT", jwk: arms.theirJwk }), SIGNATURE],
    ["their keys at jku", () => arms.theirs({ ...arms.header, jku: "https://attacker.example/jwks.json" }), SIGNATURE],
    ["their certificate at x5u", () => arms.theirs({ ...arms.header, x5u: "https://attacker.example/c" }), SIGNATURE],
    ["their certificate in x5c", () => arms.theirs({ ...arms.header, x5c: [arms.theirJwk.x] }), SIGNATURE],
    // critical extensions (RFC 7515 §4.1.11, RFC 7797)
    ["crit nobody knows", () => arms.ours({ ...arms.header, crit: ["exp"], exp: 1 }), SIGNATURE],
    ["crit that is empty", () => arms.ours({ ...arms.header, crit: [] }), MALFORMED],
    ["crit that is text", () => arms.ours({ ...arms.header, crit: "b64" }), MALFORMED],
    ["b64 false", () => arms.ours({ ...arms.header, crit: ["b64"], b64: false }), MALFORMED],
    ["b64 false, their key", () => arms.theirs({ ...arms.header, b64: false }), SIGNATURE],
    // duplicate members: what was signed is not what is read
    ["alg twice", () => arms.altered({ header: twice(arms.header, `"alg":"none"`) }), SIGNATURE],
    ["kid twice", () => arms.theirs(twice(arms.header, `"kid":"other"`)), SIGNATURE],
    ["streamname twice", () => arms.altered({ payload: twice(arms.claims, `"streamname":"theirs"`) }), SIGNATURE],
    // altered
    ["another stream name", () => arms.altered({ payload: { ...arms.claims, streamname: "theirs" } }), SIGNATURE],
    ["a later exp", () => arms.altered({ payload: { ...arms.claims, exp: NOW + YEAR_S } }), SIGNATURE],
    ["another header", () => arms.altered({ header: { ...arms.header, cty: "JWT" } }), SIGNATURE],
    ["another token's signature", async () => arms.altered({ signature: (await issue()).split(".")[2] }), SIGNATURE],
    // signatures
    ["no signature", () => arms.altered({ signature: "" }), SIGNATURE],
    ["half a signature", resigned((genuine) => genuine.subarray(32)), SIGNATURE],
    ["a signature and more", resigned((genuine) => Buffer.concat([genuine, Buffer.alloc(1)])), SIGNATURE],
    ["a signature of zeros", resigned(() => new Uint8Array(64)), SIGNATURE],
    ["a signature of the group's order", resigned(() => Buffer.from(n + n, "hex")), SIGNATURE],
    ["a signature of ones", resigned(() => new Uint8Array(64).fill(255)), SIGNATURE],
    ["a signature in ASN.1", resigned(der), SIGNATURE],
    // spellings of a genuine token (RFC 7515 §2)
    ["padding", () => `${arms.genuine}==`, MALFORMED],
    ["a line end", () => `${arms.genuine}\n`, MALFORMED],
    ["a space inside the signature", () => `${arms.genuine.slice(0, -4)} ${arms.genuine.slice(-4)}`, MALFORMED],
    ["spare bits that are set", () => arms.genuine.slice(0, -1) + nextLetter(arms.genuine.at(-1) ?? ""), MALFORMED],
    ["plain base64", () => arms.altered({ signature: signatureOf(arms.genuine).toString("base64") }), MALFORMED],
    ["a leading space", () => ` ${arms.genuine}`, SIGNATURE],
    ["a Bearer in front", () => `Bearer ${arms.genuine}`, MALFORMED],
    ["a byte order mark", () => `\ufeff${arms.genuine}`, MALFORMED],
    ["a NUL behind", () => `${arms.genuine}\0`, MALFORMED],
    ["escaped dots", () => arms.genuine.replaceAll(".", "%2E"), MALFORMED],
    // shapes
    ["one word", () => "undefined", MALFORMED],
    ["two parts", () => arms.genuine.split(".").slice(0, 2).join("."), MALFORMED],
    ["four parts", () => `${arms.genuine}.${arms.genuine.split(".")[2]}`, MALFORMED],
    ["three empty parts", () => "..", MALFORMED],
    ["three letters", () => "a.b.c", MALFORMED],
    ["three parts of garbage", () => "!!!.???.***", MALFORMED],
    ["a JWE to our public key", encrypted, MALFORMED],
    ["the JSON serialisation", () => jsonOf(arms.genuine), MALFORMED],
    ["a token in a token", () => arms.ours({ ...arms.header, cty: "JWT" }, arms.genuine), MALFORMED],
    ["a header that is a list", () => arms.ours([arms.header]), MALFORMED],
    ["a header that is null", () => arms.ours("null"), MALFORMED],
    ["a header that is no JSON", () => arms.ours("{alg:'ES256'}"), MALFORMED],
    ["a header of 5000 brackets", () => arms.ours("[".repeat(5_000)), MALFORMED],
    ["36,865 characters", () => `${arms.genuine}${"A".repeat(36_865 - arms.genuine.length)}`, MALFORMED],
    ["60,000 dots", () => ".".repeat(60_000), MALFORMED],
    // signed by our key, but not a web token
    ["a payload that is a list", ours((claims) => [claims]), MALFORMED],
    ["a payload that is null", ours(() => "null"), MALFORMED],
    ["a payload that is no UTF-8", ours(() => new Uint8Array([0x7b, 0xff, 0x7d])), MALFORMED],
    ["an empty payload", ours(() => ""), MALFORMED],
    ["another typ", () => arms.ours({ ...arms.header, typ: "at+jwt" }), MALFORMED],
    ["no typ", () => arms.ours({ alg: "ES256", kid: arms.header.kid }), MALFORMED],
    ["another issuer", ours((claims) => ({ ...claims, iss: "other" })), SIGNATURE],
    ["two issuers", ours((claims) => ({ ...claims, iss: ["headgate", "other"] })), SIGNATURE],
    ["no issuer", ours((claims) => without(claims, "iss")), SIGNATURE],
    ...["exp", "nbf", "iat", "jti", "streamname", "ingesturl"].map(
      (name): Vector => [`no ${name}`, ours((claims) => without(claims, name)), MALFORMED],
    ),
    ["exp as text", ours((claims) => ({ ...claims, exp: "9999999999" })), MALFORMED],
    ["exp as null", ours((claims) => ({ ...claims, exp: null })), MALFORMED],
    ["nbf as text", ours((claims) => ({ ...claims, nbf: "0" })), MALFORMED],
    ["a stream name that is a number", ours((claims) => ({ ...claims, streamname: 1 })), MALFORMED],
    ["exp of now", ours((claims) => ({ ...claims, exp: NOW })), "jwt expired"],
  ])("%s", async (_, token, message) => {
    expect((await verify(arms.genuine)).status).toBe(200);
    const text = await token();
    expect(text).not.toBe(arms.genuine);
    expect(seen(await verify(text))).toStrictEqual(refused(message));
  });

  /** JSON text in which a member comes first with another value. */
  function twice(object: object, member: string): string {
    return `{${member},${JSON.stringify(object).slice(1)}`;
  }
  /** The letter whose value is one higher: the last of 86 letters has four spare bits, zero in a genuine
   *  token. */
  function nextLetter(letter: string): string {
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return letters[letters.indexOf(letter) + 1] ?? "";
  }
  function jsonOf(token: string): string {
    const [protectedHeader, payload, signature] = token.split(".");
    return JSON.stringify({ payload, signatures: [{ protected: protectedHeader, signature }] });
  }
});
