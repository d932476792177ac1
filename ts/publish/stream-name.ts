// Validates stream names and custom arguments: the limits of W23 and the reserved field names of W3. Names and
// arguments are never changed (W2).

import { integer } from "../setting-kinds.ts";
import { fieldNames, PAIRS_LIMIT, pairCount } from "./form-fields.ts";

/** Longest stream name, and longest custom arguments, in bytes (W23). */
export const NAME_LIMIT_BYTES = 255;
export const ARGUMENTS_LIMIT_BYTES = 2048;

/** Fewest random characters of a new name with 80 bits: 62 different ones carry 5.95 bits each. */
const RANDOM_LEAST = 14;

export const STREAM_NAME_SETTINGS = {
  "stream.name_random": {
    ...integer(RANDOM_LEAST, 64, `characters from ${RANDOM_LEAST} to 64`),
    env: "HEADGATE_STREAM_NAME_RANDOM",
    fallback: RANDOM_LEAST,
    meaning: "random characters of a new stream's name: 14 carry 83 bits",
  },
} as const;

const MISSING_NAME = "Stream name is missing: enter it as the stream key, or after /live/ in the address";

/** Fixed fields of the webhook body, which a broadcaster must not be able to set ahead of ours (W3). */
const RESERVED_FIELDS: readonly string[] = ["call", "name", "app", "addr", "clientid", "bytes_in", "bytes_out"];
/** Fixed fields that signed URLs use as well: forwarded unless the arguments are checked strictly (W3). */
const STRICTLY_RESERVED_FIELDS: readonly string[] = ["time", "timestamp"];

export type StreamNameCheck =
  | { readonly outcome: "accepted"; readonly name: string }
  | { readonly outcome: "refused"; readonly cause: "malformed_name" | "reserved_field"; readonly description: string };

/** Validates a stream name and its custom arguments as received. The descriptions are for the broadcaster and never
 *  repeat what was sent. */
export function checkStreamName(name: Uint8Array, customArguments: Uint8Array | null): StreamNameCheck {
  if (name.length === 0) return refused(MISSING_NAME);
  if (name.length > NAME_LIMIT_BYTES) return refused(`Stream name is longer than ${NAME_LIMIT_BYTES} bytes`);
  if (hasControlCharacter(name)) return refused("Stream name contains control characters: copy the stream key again");
  const text = utf8(name);
  if (text === null) return refused("Stream name is not UTF-8");
  return (customArguments && checkCustomArguments(customArguments)) ?? { outcome: "accepted", name: text };
}

/** Why custom arguments are refused for every organisation, or null. */
export function checkCustomArguments(
  customArguments: Uint8Array,
): Extract<StreamNameCheck, { outcome: "refused" }> | null {
  if (customArguments.length > ARGUMENTS_LIMIT_BYTES) {
    return refused(`Custom arguments are longer than ${ARGUMENTS_LIMIT_BYTES} bytes`);
  }
  if (hasControlCharacter(customArguments)) return refused("Custom arguments contain control characters");
  if (pairCount(customArguments) > PAIRS_LIMIT) return refused(`Custom arguments have more than ${PAIRS_LIMIT} fields`);
  const field = reservedField(customArguments, RESERVED_FIELDS);
  if (field === null) return null;
  return { outcome: "refused", cause: "reserved_field", description: `Custom arguments must not contain ${field}` };
}

function refused(description: string) {
  return { outcome: "refused", cause: "malformed_name", description } as const;
}

/** Fields that an organisation's settings reserve in addition: `time` and `timestamp` in strict mode (W3), and the
 *  fields it requested for update_publish. Checked once the organisation is known. */
export function alsoReservedField(
  customArguments: Uint8Array | null,
  settings: { readonly strict_arguments: boolean; readonly update_fields: readonly string[] },
): string | null {
  const strictly = settings.strict_arguments ? STRICTLY_RESERVED_FIELDS : [];
  const reserved = [...strictly, ...settings.update_fields];
  return customArguments === null || reserved.length === 0 ? null : reservedField(customArguments, reserved);
}

/** The first of `reserved` that some form parser would find in `customArguments`, or null (W3). Without this check a
 *  broadcaster could make a customer whose parser takes the first value authorise a stream other than the one that goes
 *  live. */
function reservedField(customArguments: Uint8Array, reserved: readonly string[]): string | null {
  const names = fieldNames(customArguments);
  return reserved.find((field) => names.has(field)) ?? null;
}

function hasControlCharacter(bytes: Uint8Array): boolean {
  return bytes.some((byte) => byte < 0x20 || byte === 0x7f);
}

/** `bytes` as text when they are valid UTF-8 (so that encoding restores the same bytes), else null. */
export function utf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
