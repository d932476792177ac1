// JSON → AMF0, for what a broadcaster sends with its media: metadata and connect_info (P11, P12). Encoder only; the
// core decodes.

/** Nesting of objects and arrays (P12); members of one value; bytes of one key. */
const DEPTH_LIMIT = 6;
const MEMBERS_LIMIT = 1_024;
const KEY_LIMIT_BYTES = 255;
const LONG_STRING_FROM = 0x1_0000;

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** Null for text that is not a JSON object, or exceeds the limits of nesting or members. */
export function readJsonObject(text: string): { readonly [key: string]: Json } | null {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return null;
  }
  return isObject(value) && isModest(value) ? value : null;
}

export function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The values one after another, as in an RTMP data message (AMF0 2.2 and following). */
export function writeAmf0(...values: readonly Json[]): Buffer {
  return Buffer.concat(values.map(writeValue));
}

function writeValue(value: Json): Buffer {
  if (value === null) return Buffer.from([0x05]);
  if (typeof value === "boolean") return Buffer.from([0x01, value ? 1 : 0]);
  if (typeof value === "number") {
    const bytes = Buffer.alloc(9);
    bytes.writeDoubleBE(value, 1);
    return bytes;
  }
  if (typeof value === "string") return writeString(value);
  if (isObject(value)) {
    const members = Object.entries(value).flatMap(([key, member]) => [writeKey(key), writeValue(member)]);
    return Buffer.concat([Buffer.from([0x03]), ...members, Buffer.from([0, 0, 0x09])]);
  }
  const length = Buffer.alloc(5, 0x0a);
  length.writeUInt32BE((value as readonly Json[]).length, 1);
  return Buffer.concat([length, ...(value as readonly Json[]).map(writeValue)]);
}

function writeString(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length < LONG_STRING_FROM) return Buffer.concat([Buffer.from([0x02]), writeKey(text)]);
  const head = Buffer.alloc(5, 0x0c);
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

function writeKey(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Whether it is shallow and small enough for any RTMP implementation. */
function isModest(whole: Json): boolean {
  let members = 0;
  const check = (value: Json, depth: number): boolean => {
    if (typeof value !== "object" || value === null) return true;
    if (depth > DEPTH_LIMIT) return false;
    const entries = Object.entries(value);
    members += entries.length;
    return members <= MEMBERS_LIMIT && entries.every(([key, member]) => isKey(key) && check(member, depth + 1));
  };
  return check(whole, 1);
}

/** An empty key would end the object (AMF0 2.5). */
function isKey(key: string): boolean {
  return key !== "" && Buffer.byteLength(key) <= KEY_LIMIT_BYTES;
}
