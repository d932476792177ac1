// The custom argument that carries the publish key: `NAME?key=…`. Like every argument it is forwarded as given (W2).

/** Separates two pairs. A `?` is one here: people and programs add arguments with it a second time. */
const SEPARATOR = /[&;?]/;
/** The name of the argument. */
const NAME = "key";
/** What surrounds a pasted key and is in none: keys have letters and digits only. */
const AROUND = /^[\s"'/]+|[\s"'/]+$/gu;

/** The key in these arguments; null when there is none or it is empty. Different values count as one wrong key, so that
 *  one request is one guess. */
export function readKeyArgument(custom: Uint8Array | null): string | null {
  const values = pairsOf(custom).filter(isKey).map(keyIn);
  const given = new Set(values.filter((value) => value !== ""));
  return given.size === 0 ? null : [...given].join("&");
}

/** The arguments without those that carry a key, to compare them with others; null when nothing is left. */
export function withoutKeyArgument(custom: Uint8Array | null): Uint8Array | null {
  const others = pairsOf(custom).filter((pair) => !isKey(pair));
  return others.length === 0 ? null : Buffer.from(others.join("&"), "latin1");
}

function pairsOf(custom: Uint8Array | null): readonly string[] {
  return custom === null ? [] : Buffer.from(custom).toString("latin1").split(SEPARATOR);
}

const isKey = (pair: string) => decoded(pair.split("=", 1)[0] ?? "") === NAME;

const keyIn = (pair: string) =>
  decoded(pair.includes("=") ? pair.slice(pair.indexOf("=") + 1) : "").replace(AROUND, "");

/** Percent-decoded; what is no valid encoding stays as it is. */
function decoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
