// Hostile tokens by the hundred (RFC 7515, RFC 7519, RFC 8725), made from tables: every one is refused,
// whatever our signing algorithm. Single ones with their exact answers are in webcaster.test.ts. And an
// independent library accepts ours.
import { createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { exportSPKI } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { providePython } from "../../../scripts/python.mjs";
import { run } from "../../support/child.ts";
import { type Gateway, openGateway, START_MS } from "../../support/gateway.ts";

const NOW = START_MS / 1000;
const SUBJECT = { streamname: "Ab1Cd-9XyZ0?passcode=s3cret", ingesturl: "rtmp://in.example:1935/live" };

const segment = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

interface Vector {
  readonly what: string;
  readonly token: string;
}

const theirKeys = {
  ec: generateKeyPairSync("ec", { namedCurve: "P-256" }),
  rsa: generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ed: generateKeyPairSync("ed25519"),
};

function signedBy(key: KeyObject, input: string): string {
  const bytes = Buffer.from(input);
  if (key.asymmetricKeyType === "ed25519") return sign(null, bytes, key).toString("base64url");
  return sign("sha256", bytes, key.asymmetricKeyType === "ec" ? { key, dsaEncoding: "ieee-p1363" } : key).toString(
    "base64url",
  );
}

/** Everything an attacker can make of one genuine token of `alg` and the published keys. */
async function* attacks(gateway: Gateway, alg: string, genuine: string): AsyncGenerator<Vector> {
  const [head = "", body = "", signature = ""] = genuine.split(".");
  const header = JSON.parse(Buffer.from(head, "base64url").toString()) as Record<string, unknown>;
  const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
  const jwk = gateway.tokenKeys.published.find(({ kid }) => kid === header.kid) ?? {};
  const publicKey = gateway.tokenKeys.find(String(header.kid), alg);
  if (publicKey === null) throw new Error("no published key");
  const pem = await exportSPKI(publicKey);
  const forged = { ...claims, streamname: "theirs" };
  const input = (h: unknown, p: unknown) => `${segment(h)}.${segment(p)}`;
  const withTheirs = (h: object, p: object = forged) =>
    Object.entries(theirKeys).map(([kind, { privateKey }]) => ({
      kind,
      token: `${input(h, p)}.${signedBy(privateKey, input(h, p))}`,
    }));

  // no signature, in every spelling
  for (const none of ["none", "None", "NONE", "nOnE", "none ", " none", "", null, false, 0, [], {}, ["none"]]) {
    for (const rest of ["", signature]) {
      yield { what: `alg ${JSON.stringify(none)}`, token: `${input({ ...header, alg: none }, forged)}.${rest}` };
    }
  }
  // key confusion: everything public as a secret
  const secrets = {
    pem,
    trimmed: pem.trim(),
    jwk: JSON.stringify(jwk),
    x: String(jwk.x ?? jwk.n),
    empty: "",
    kid: String(header.kid),
  };
  for (const [what, secret] of Object.entries(secrets)) {
    for (const [name, hash] of [
      ["HS256", "sha256"],
      ["HS384", "sha384"],
      ["HS512", "sha512"],
      [alg, "sha256"],
    ] as const) {
      const text = input({ ...header, alg: name }, forged);
      yield {
        what: `${name} with ${what}`,
        token: `${text}.${createHmac(hash, secret).update(text).digest("base64url")}`,
      };
    }
  }
  // other keys under every name, and where the header says they are
  for (const name of [
    alg,
    "ES256",
    "ES384",
    "ES512",
    "ES256K",
    "RS256",
    "RS512",
    "PS256",
    "PS512",
    "EdDSA",
    "Ed25519",
    "Ed448",
  ]) {
    for (const { kind, token } of withTheirs({ ...header, alg: name }))
      yield { what: `${name} by their ${kind}`, token };
  }
  const theirJwk = theirKeys.ec.publicKey.export({ format: "jwk" });
  const places: readonly object[] = [
    { jwk: theirJwk },
    { jwk: { ...theirJwk, kid: header.kid } },
    { jku: "https://attacker.example/jwks.json" },
    { jku: "file:///etc/passwd" },
    { x5u: "https://attacker.example/c.pem" },
    { x5c: ["MIIB"] },
    { x5t: "AAAA" },
    { "x5t#S256": "AAAA" },
    { cty: "JWT" },
    { zip: "DEF" },
    { enc: "A256GCM" },
    { b64: false },
    { b64: false, crit: ["b64"] },
    { crit: ["exp"] },
    { crit: [] },
    { crit: "b64" },
    { crit: [null] },
    { crit: ["x"], x: 1 },
    { p2c: 1_000_000_000 },
  ];
  for (const place of places) {
    for (const { kind, token } of withTheirs({ ...header, ...place })) {
      yield { what: `${JSON.stringify(place).slice(0, 30)} by their ${kind}`, token };
    }
  }
  for (const kid of [
    "../../dev/null",
    "/dev/null",
    "' or 1=1 --",
    "__proto__",
    "constructor",
    "",
    "*",
    null,
    0,
    {},
    [],
    true,
  ]) {
    for (const { kind, token } of withTheirs({ ...header, kid }))
      yield { what: `kid ${JSON.stringify(kid)} by ${kind}`, token };
  }
  // duplicate members: the parser takes the last, the signature covers neither
  for (const member of [`"alg":"none"`, `"kid":"x"`, `"typ":"x"`, `"crit":["x"]`]) {
    yield {
      what: `${member} twice`,
      token: `${segment(JSON.stringify(header).replace(/}$/, `,${member}}`))}.${body}.${signature}`,
    };
  }
  for (const member of [`"streamname":"theirs"`, `"exp":99999999999`, `"iss":"x"`, `"nbf":0`]) {
    yield {
      what: `${member} twice`,
      token: `${head}.${segment(JSON.stringify(claims).replace(/}$/, `,${member}}`))}.${signature}`,
    };
  }
  // every claim altered under the genuine signature
  for (const [name, value] of Object.entries(claims)) {
    const others = [null, "", -1, typeof value === "number" ? value + 1 : `${String(value)}x`, [value], { value }];
    for (const other of others)
      yield {
        what: `${name} ${JSON.stringify(other)}`,
        token: `${head}.${segment({ ...claims, [name]: other })}.${signature}`,
      };
  }
  // invalid signatures
  const length = Buffer.from(signature, "base64url").length;
  for (const bytes of [0, 1, length - 1, length, length + 1, 2 * length, 1_000]) {
    for (const fill of [0, 255])
      yield {
        what: `${bytes} bytes of ${fill}`,
        token: `${head}.${body}.${Buffer.alloc(bytes, fill).toString("base64url")}`,
      };
    yield { what: `${bytes} random bytes`, token: `${head}.${body}.${randomBytes(bytes).toString("base64url")}` };
  }
  const bits = Buffer.from(signature, "base64url");
  for (let at = 0; at < bits.length; at += 7) {
    const flipped = Buffer.from(bits);
    flipped[at] = (flipped[at] ?? 0) ^ 1;
    yield { what: `bit of byte ${at} flipped`, token: `${head}.${body}.${flipped.toString("base64url")}` };
  }
  // shapes and sizes
  const shapes = [
    "",
    ".",
    "..",
    "...",
    "....",
    `${head}.${body}`,
    `${head}.${body}.`,
    `.${body}.${signature}`,
    `${head}..${signature}`,
    `${genuine}.`,
    `.${genuine}`,
    `${genuine}.${signature}`,
    `${genuine}=`,
    `${genuine}\n`,
    `${genuine} `,
    `\u0000${genuine}`,
    `${genuine}#`,
    `${genuine}%00`,
    genuine.toUpperCase(),
    genuine.split("").reverse().join(""),
    `${head}.${body}.${signature}${signature}`,
    `${head}.${body}.${bits.toString("base64")}=`,
    `${head}.${head}.${signature}`,
    `${body}.${body}.${signature}`,
    JSON.stringify({ protected: head, payload: body, signature }),
    `${head}.${head}.${body}.${body}.${signature}`,
    "A".repeat(36_864),
    `${genuine}${"A".repeat(1_000_000)}`,
    `${"A".repeat(1_000_000)}.${body}.${signature}`,
    ".".repeat(1_000_000),
    `${segment("[".repeat(20_000))}.${body}.${signature}`,
    `${segment(`{"a":`.repeat(4_000))}.${body}.${signature}`,
  ];
  for (const token of shapes) yield { what: `shape ${JSON.stringify(token.slice(0, 20))} of ${token.length}`, token };
}

describe.concurrent.each(["ES256", "RS256", "EdDSA"])("with %s", (alg) => {
  let gateway: Gateway;
  let genuine: string;
  const verify = async (token: string) =>
    (await gateway.call("POST", "/webcaster/verify", { key: null, body: { token } })).status;

  beforeAll(async () => {
    gateway = await openGateway({ HEADGATE_TOKEN_ALG: alg });
    const { body } = await gateway.call("POST", "/webcaster", { body: { ...SUBJECT, exp: NOW + 3_600 } });
    genuine = (body as { data: { token: string } }).data.token;
  });
  afterAll(() => gateway.close());

  test("more than two hundred hostile tokens are refused, and the genuine one is accepted", async () => {
    const accepted: string[] = [];
    let tried = 0;
    for await (const { what, token } of attacks(gateway, alg, genuine)) {
      tried += 1;
      const status = await verify(token);
      // Beyond 64 KiB the body itself is refused.
      if (![400, 403, 413].includes(status)) accepted.push(`${what}: ${status}`);
    }
    expect(accepted).toEqual([]);
    expect(tried).toBeGreaterThan(200);
    expect(await verify(genuine)).toBe(200);
  }, 60_000);

  test("PyJWT accepts our tokens with the published keys alone, and none that was altered", async () => {
    const { body } = await gateway.call("GET", "/.well-known/jwks.json", { key: null });
    const script = `
import json, sys, jwt
keys, token, now = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
header = jwt.get_unverified_header(token)
key = next(k for k in jwt.PyJWKSet.from_dict(keys).keys if k.key_id == header["kid"])
options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "require": ["exp", "nbf", "iat", "jti", "iss"]}
claims = jwt.decode(token, key.key, algorithms=[header["alg"]], issuer="headgate", options=options)
try:
    parts = token.split(".")
    jwt.decode(parts[0] + "." + parts[1][:-2] + "AA." + parts[2], key.key, algorithms=[header["alg"]], options=options)
    print("altered accepted")
except jwt.InvalidTokenError:
    print(json.dumps({"alg": header["alg"], "claims": claims}))
`;
    const said = await run(providePython(), ["-c", script, JSON.stringify(body), genuine, String(NOW)]);
    expect(JSON.parse(said.stdout())).toMatchObject({ alg, claims: { ...SUBJECT, exp: NOW + 3_600, iss: "headgate" } });
  }, 240_000);
});
