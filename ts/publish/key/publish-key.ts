// The publish key of a stream: a secret apart from its name, which players know as well. It is derived from the key file
// and stored nowhere.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { StreamTable } from "../../store/schema.ts";
import type { SecretBox } from "../../store/secret-box.ts";

/** 16 of 62 characters are 95 bits; M12a requires 80. */
const KEY_LENGTH = 16;

export type KeyedStream = Pick<StreamTable, "id" | "key_salt">;

export interface PublishKeys {
  /** Letters and digits, like a stream name. */
  of(stream: KeyedStream): string;
  isRight(given: string, stream: KeyedStream): boolean;
}

/** The same on every node: they share the key file. */
export function createPublishKeys(box: Pick<SecretBox, "keyFor">): PublishKeys {
  let secret: Buffer | null = null;
  const keys: PublishKeys = {
    of({ id, key_salt }) {
      secret ??= box.keyFor("publish keys");
      const derived = createHmac("sha512", secret)
        .update(JSON.stringify([id, key_salt]))
        .digest("base64url");
      return derived.replace(/[-_]/g, "").slice(0, KEY_LENGTH);
    },
    // By their hashes, which have one length, so that the time tells nothing about the key.
    isRight: (given, stream) => timingSafeEqual(hashOf(given), hashOf(keys.of(stream))),
  };
  return keys;
}

/** Whether publishes of the stream need its key. */
export function needsKey(
  stream: Pick<StreamTable, "publish_key">,
  settings: { readonly publish_key: boolean },
): boolean {
  return stream.publish_key === null ? settings.publish_key : Number(stream.publish_key) !== 0;
}

const hashOf = (text: string) => createHash("sha256").update(text).digest();
