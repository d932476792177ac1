// Generates passwords for people: long enough, and without letters that are easily confused.

const LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const GROUPS = 4;
const GROUP_LENGTH = 5;

/** `x7Kp2-…`: 20 letters, 116 random bits. */
export function newPassword(): string {
  return Array.from({ length: GROUPS }, () => Array.from({ length: GROUP_LENGTH }, letter).join("")).join("-");
}

/** Numbers above the last whole multiple are discarded, so that all letters are equally likely. */
function letter(): string {
  const limit = 256 - (256 % LETTERS.length);
  for (;;) {
    const [number = limit] = crypto.getRandomValues(new Uint8Array(1));
    if (number < limit) return LETTERS.charAt(number % LETTERS.length);
  }
}
