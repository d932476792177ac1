// Encrypts secrets in the store with the key file of the data directory (AES-256-GCM), so that a copy of the database
// alone reveals none.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { StoreUnavailable } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { createFile } from "./files/synced.ts";
import type { Schema } from "./schema.ts";

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

/** Opens the box with `headgate.key` of the data directory, for the store `db`. The key is created (0600) for a store
 *  that has no secrets yet; for any other one a missing key is lost. Rejects with `StoreUnavailable`. */
export async function openSecretBoxOf(db: Kysely<Schema>, dataDir: string): Promise<SecretBox> {
  const path = join(dataDir, KEY_FILE);
  // Every store has token keys from its first start.
  const sealed = existsSync(path) ? undefined : await db.selectFrom("token_key").select("kid").executeTakeFirst();
  if (sealed === undefined) return openSecretBox(dataDir);
  throw new StoreUnavailable(
    `${path} is missing: the secrets in the store can be read only with it. Put it back, from where it is kept beside the backups or from another node`,
  );
}

/** Opens the box with `headgate.key` of the data directory, which is created (0600) when it is missing. */
export function openSecretBox(dataDir: string): SecretBox {
  const path = join(dataDir, KEY_FILE);
  try {
    if (!existsSync(path)) createFile(path, `${randomBytes(KEY_BYTES).toString("base64url")}\n`);
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
