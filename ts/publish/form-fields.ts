// Which fields some form parser finds in custom arguments (W3). Customers read the webhook body with the parser of
// their language, and parsers disagree: a name counts as present when the most lenient of them would find it. Nothing
// here is forwarded.

/** Pairs after this many are not examined: parsers stop at 1,000 (PHP, Django, qs), and our fields come last. */
export const PAIRS_LIMIT = 500;

/** How many pairs a parser finds that takes both `&` and `;` as separators. */
export function pairCount(customArguments: Uint8Array): number {
  let count = 1;
  for (const byte of customArguments) if (byte === 0x26 || byte === 0x3b) count += 1;
  return count;
}

/** Every name that a parser may find, in lower case, with `_` where PHP writes it. */
export function fieldNames(customArguments: Uint8Array): ReadonlySet<string> {
  const names = new Set<string>();
  for (const body of readings(customArguments)) {
    for (const pair of splitPairs(body)) {
      for (const name of readings(percentDecodedBytes(pair))) for (const form of formsOf(name)) names.add(form);
    }
  }
  return names;
}

/** Length of a UTF-8 sequence as its first byte declares it, whether the bytes follow or not (RFC 2279: up to six). */
function claimedLength(first: number): number {
  if (first < 0xc0 || first > 0xfd) return 1;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  if (first < 0xf8) return 4;
  return first < 0xfc ? 5 : 6;
}

/** The ASCII text that lenient UTF-8 decoders make of bytes: some drop what is invalid and continue with the next byte,
 *  others consume as many bytes as the first one declares. Both accept overlong forms. */
function readings(bytes: Uint8Array): readonly Uint8Array[] {
  if (bytes.every((byte) => byte < 0x80)) return [bytes];
  const careful = asciiOf(bytes, false);
  const trusting = asciiOf(bytes, true);
  return Buffer.compare(careful, trusting) === 0 ? [careful] : [careful, trusting];
}

/** `bytes` without the characters that have no ASCII counterpart; `takesClaimed`: an invalid sequence is skipped for
 *  its declared length. */
function asciiOf(bytes: Uint8Array, takesClaimed: boolean): Uint8Array {
  let text = "";
  for (let at = 0; at < bytes.length; ) {
    const first = bytes[at] ?? 0;
    const length = claimedLength(first);
    const rest = bytes.subarray(at + 1, at + length);
    const isWhole = rest.length === length - 1 && rest.every((byte) => byte >> 6 === 2);
    if (first < 0x80) text += String.fromCharCode(first);
    else if (isWhole && length > 1) text += String.fromCodePoint(codePoint(first, rest));
    at += isWhole || takesClaimed ? length : 1;
  }
  // Compatibility forms (full width, ligatures) and accents are reduced to their ASCII letters; byte order marks are
  // removed.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is kept
  return Buffer.from(text.normalize("NFKD").replace(/[^\x00-\x7f]/gu, ""), "latin1");
}

function codePoint(first: number, rest: Uint8Array): number {
  const bits = first & (0xff >> (rest.length + 2));
  const point = rest.reduce((value, byte) => value * 64 + (byte & 0x3f), bits);
  return point > 0x10ffff ? 0xfffd : point;
}

/** The names before the first `=` of each pair; a leading `?` of the first one is dropped as URLSearchParams does. */
function splitPairs(body: Uint8Array): readonly string[] {
  const text = Buffer.from(body).toString("latin1").replace(/^\?+/, "");
  return text.split(/[&;]/).map((pair) => pair.split("=", 1)[0] ?? "");
}

/** Decodes `%XX`, and `%uXXXX` as ASP.NET, Perl's CGI and Jetty do. */
function percentDecodedBytes(name: string): Uint8Array {
  const utf8 = (_: string, hex: string) =>
    Buffer.from(String.fromCharCode(Number.parseInt(hex, 16))).toString("latin1");
  const byte = (_: string, hex: string) => String.fromCharCode(Number.parseInt(hex, 16));
  // In one pass: the output of one escape is not part of another.
  const decoded = name.replace(/%u([0-9a-f]{4})|%([0-9a-f]{2})/gi, (all, unit?: string, hex?: string) =>
    unit === undefined ? byte(all, hex ?? "") : utf8(all, unit),
  );
  return Buffer.from(decoded.replaceAll("+", " "), "latin1");
}

/** A name as it appears to parsers that support arrays, trim, or turn names into identifiers. */
function formsOf(name: Uint8Array): readonly string[] {
  const text = Buffer.from(name).toString("latin1").toLowerCase();
  // Rack strips leading brackets, qs an empty parent; qs with `allowDots` treats a dot as a bracket.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: parsers trim control characters like spaces
  const front = text.replace(/^[\x00-\x20[\].]+/, "");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: C parsers end a name at NUL
  const whole = front.replace(/\x00.*$/s, "");
  const cut = whole.replace(/[[\]].*$/s, "");
  // PHP writes `_` for an unclosed bracket and for a dot, which other parsers take as the start of a property.
  return [cut, whole, whole.replace(/[[\].].*$/s, "")].map((form) => trimmed(form).replace(/[. []/g, "_"));
}

function trimmed(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: as above
  return text.replace(/[\x00-\x20]+$/, "");
}
