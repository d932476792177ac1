// Hostile custom arguments: names of our fields in every disguise that some parser might decode.

/** Pseudo-random numbers below `limit`, the same for the same seed (xorshift32). */
function dice(seed: number): (limit: number) => number {
  let state = seed | 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

const NAMES = ["call", "name", "app", "addr", "clientid", "bytes_in", "bytes_out", "nam", "time", "x", ""];
/** One character per byte. */
const AROUND = [
  ..."[].?&;=+ %_",
  ..."%5B %5D %2E %20 %00 %09 %26 %3D %EF%BB%BF %FE%FF %u200b %u0000 %e2%80%8b []= ]= [0] [x] %".split(" "),
  ...["\xef\xbb\xbf", "\xe2\x80\x8b", "\xff\xfe", "\xc0\x80", "\xf0", "\xe9", "\xc2\xa0", "&&&", "a&".repeat(120)],
];
const DISGUISES: readonly ((letter: string, roll: (limit: number) => number) => string)[] = [
  (letter) => letter.toUpperCase(),
  (letter) => `%${hex(letter.charCodeAt(0), 2)}`,
  (letter) => `%u${hex(letter.charCodeAt(0), 4)}`,
  // Overlong: two bytes for a one-byte character.
  (letter) => String.fromCharCode(0xc0 | (letter.charCodeAt(0) >> 6), 0x80 | (letter.charCodeAt(0) & 0x3f)),
  (letter) => `%${hex(0xc0 | (letter.charCodeAt(0) >> 6), 2)}%${hex(0x80 | (letter.charCodeAt(0) & 0x3f), 2)}`,
  // Full width.
  (letter) => Buffer.from(String.fromCharCode(letter.charCodeAt(0) + 0xfee0)).toString("latin1"),
  (letter, roll) => pick(AROUND, roll) + letter,
  (letter, roll) => letter + pick(AROUND, roll),
  (letter) => `\xcc\x81${letter}`,
];

/** `count` arguments of at most 2,048 bytes each; the same for the same seed. */
export function oddArguments(count: number, seed: number): readonly Buffer[] {
  const roll = dice(seed);
  const one = () => {
    const pairs = Array.from({ length: 1 + roll(4) }, () => pair(roll));
    return Buffer.from(pairs.join(roll(4) === 0 ? ";" : "&"), "latin1").subarray(0, 2_048);
  };
  return Array.from({ length: count }, one);
}

function pair(roll: (limit: number) => number): string {
  const name = [...pick(NAMES, roll)].map((letter) => (roll(3) === 0 ? pick(DISGUISES, roll)(letter, roll) : letter));
  const around = () => (roll(3) === 0 ? pick(AROUND, roll) : "");
  return `${around()}${name.join("")}${around()}${roll(8) === 0 ? "" : "="}${around()}VICTIM${around()}`;
}

const pick = <T>(from: readonly T[], roll: (limit: number) => number): T => from[roll(from.length)] as T;
const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
