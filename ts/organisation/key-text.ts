// The text of an API key issued by us (M15): `hg_<id>_<secret><checksum>`. The checksum lets a person or a scanner
// recognise a mistyped or genuine key without the store; it is not secret and proves nothing.
import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH = 8;
/** 28 of 62 characters are 166 random bits; M15 requires 160. */
const SECRET_LENGTH = 28;
/** 6 of 62 characters hold every CRC-32. */
const CHECKSUM_LENGTH = 6;
const PATTERN = new RegExp(`^hg_[A-Za-z0-9]{${ID_LENGTH}}_[A-Za-z0-9]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`);

/** `length` random characters of [A-Za-z0-9], evenly distributed, from the system's secure source. */
export function randomText(length: number): string {
  return Array.from({ length }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}

/** A new key: shown once, afterwards only its hash is stored. */
export function newKeyText(): { readonly id: string; readonly key: string } {
  const id = randomText(ID_LENGTH);
  const body = `hg_${id}_${randomText(SECRET_LENGTH)}`;
  return { id, key: body + checksum(body) };
}

/** False when `text` has the form of our keys but a wrong checksum. Keys of other forms cannot be checked and count as
 *  valid. */
export function keyChecksumHolds(text: string): boolean {
  return !PATTERN.test(text) || checksum(text.slice(0, -CHECKSUM_LENGTH)) === text.slice(-CHECKSUM_LENGTH);
}

/** The id in the text of a key of ours; null for texts of other forms and mistyped ones. It authenticates nobody. */
export function keyIdIn(text: string): string | null {
  return PATTERN.test(text) && keyChecksumHolds(text) ? text.slice(3, 3 + ID_LENGTH) : null;
}

function checksum(body: string): string {
  let rest = crc32(body);
  let digits = "";
  for (let index = 0; index < CHECKSUM_LENGTH; index += 1) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits;
}
