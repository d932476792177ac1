// A self-signed certificate for a local HTTPS server (RFC 5280, DER by hand): trusting its PEM means trusting only that
// server.
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

const DAY_MS = 86_400_000;
/** Object identifiers, encoded: ecdsa-with-SHA256, commonName, subjectAltName, basicConstraints. */
const ECDSA_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");
const ALT_NAME = Buffer.from("0603551d11", "hex");
const BASIC_CONSTRAINTS = Buffer.from("0603551d13", "hex");

/** For `localhost`, 127.0.0.1 and ::1, from a day before `now` (epoch ms) for `days`. PEM both. */
export function selfSigned(now: number, days: number): { readonly cert: string; readonly key: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = sequence(set(sequence(COMMON_NAME, tlv(0x0c, Buffer.from("Headgate on this machine")))));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40; // positive, and no leading zero
  const loopback6 = Buffer.alloc(16);
  loopback6[15] = 1;
  const names = sequence(
    tlv(0x82, Buffer.from("localhost")),
    tlv(0x87, Buffer.from([127, 0, 0, 1])),
    tlv(0x87, loopback6),
  );
  const isTrue = tlv(0x01, Buffer.from([0xff]));
  const body = sequence(
    tlv(0xa0, tlv(0x02, Buffer.from([2]))),
    tlv(0x02, serial),
    sequence(ECDSA_SHA256),
    name,
    sequence(time(now - DAY_MS), time(now + days * DAY_MS)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tlv(
      0xa3,
      sequence(sequence(ALT_NAME, tlv(0x04, names)), sequence(BASIC_CONSTRAINTS, isTrue, tlv(0x04, sequence(isTrue)))),
    ),
  );
  const signature = sign("sha256", body, privateKey);
  const whole = sequence(body, sequence(ECDSA_SHA256), tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: readonly Buffer[]) => tlv(0x30, ...parts);
const set = (...parts: readonly Buffer[]) => tlv(0x31, ...parts);

/** As GeneralizedTime; before 2050 certificates should use UTCTime, whose year has two digits. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return digits < "2050" ? tlv(0x17, Buffer.from(digits.slice(2))) : tlv(0x18, Buffer.from(digits));
}
