// Encrypts secrets in the store with the key file of the data directory (AES-256-GCM), so that a copy of the database
// alone reveals none.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";

/** Name in the data directory. */
export const KEY_FILE = "headgate.key";
const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;

export interface SecretBox {
  /** `purpose` binds the result to its place: it cannot be opened for another one. The result is base64url. */
  seal(text: string, purpose: string): string;
  /** Throws `StoreUnavailable` when the key file is not the one that sealed it. */
  open(sealed: string, purpose: string): string;
  /** A key for `purpose` derived from the key file, 32 bytes (HKDF, RFC 5869). */
  keyFor(purpose: string): Buffer;
}

/** Opens the box with `headgate.key` of the data directory, which is created (0600) when it is missing. */
export function openSecretBox(dataDir: string): SecretBox {
  const path = join(dataDir, KEY_FILE);
  try {
    if (!existsSync(path)) writeKey(path);
  } catch (cause) {
    throw new StoreUnavailable(`cannot use ${path}: ${reasonOf(cause)}`, { cause });
  }
  return openKeyFile(path);
}

/** Opens the box with the key file at `path`. Throws `StoreUnavailable` when it is missing or invalid. */
export function openKeyFile(path: string): SecretBox {
  const key = readKey(path);
  return {
    keyFor: (purpose) => Buffer.from(hkdfSync("sha256", key, "", purpose, KEY_BYTES)),
    seal(text, purpose) {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv("aes-256-gcm", key, iv).setAAD(Buffer.from(purpose));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
    },
    open(sealed, purpose) {
      const bytes = Buffer.from(sealed, "base64url");
      const [iv, tag] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES)];
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, iv, { authTagLength: TAG_BYTES });
        decipher.setAAD(Buffer.from(purpose)).setAuthTag(tag);
        return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]).toString(
          "utf8",
        );
      } catch (cause) {
        const advice = "put the right one back, or copy it from another node";
        throw new StoreUnavailable(`${path} is not the key this store was made with; ${advice}`, { cause });
      }
    },
  };
}

function readKey(path: string): Buffer {
  try {
    const key = Buffer.from(readFileSync(path, "utf8").trim(), "base64url");
    if (key.length !== KEY_BYTES) throw new Error(`it must hold ${KEY_BYTES} bytes as base64url`);
    return key;
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new StoreUnavailable(`cannot use ${path}: ${reason}`, { cause });
  }
}

function writeKey(path: string): void {
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, `${randomBytes(KEY_BYTES).toString("base64url")}\n`);
    fsyncSync(file); // must be on disk before anything sealed with it
  } finally {
    closeSync(file);
  }
}
