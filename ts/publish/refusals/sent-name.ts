// A stream name as a stranger sent it: as text that can be stored and shown, and as a hash for logs, where names are
// secrets.
import { createHash } from "node:crypto";

/** Longest name kept, characters. */
const NAME_LIMIT = 255;

/** Where arguments begin, percent-encoded or not. No stream has such a name. */
const BEGINNING_OF_ARGUMENTS = /[?&;]|%(?:3f|26|3b)/i;

/** What follows are arguments, or were meant as such, which may contain pass codes. */
export function nameWithoutArguments(sent: Uint8Array): Uint8Array {
  // One character for each byte.
  const begin = Buffer.from(sent).toString("latin1").search(BEGINNING_OF_ARGUMENTS);
  return begin === -1 ? sent : sent.subarray(0, begin);
}

/** Control characters and invalid bytes are replaced. */
export const nameText = (sent: Uint8Array): string => plainText(Buffer.from(sent).toString("utf8"), NAME_LIMIT);

/** At most `most` characters, none of which controls anything. */
export function plainText(text: string, most: number): string {
  // What nearly every text is: a refusal must cost little.
  if (text.length <= most && /^[\x20-\x7e]*$/.test(text)) return text;
  const plain = text.toWellFormed().replaceAll(/[\p{Cc}\p{Cf}]/gu, "\ufffd");
  const characters = [...plain];
  return characters.length <= most ? plain : `${characters.slice(0, most - 1).join("")}…`;
}

/** `printf %s NAME | sha256sum | cut -c1-16` */
export const nameHash = (sent: Uint8Array): string => createHash("sha256").update(sent).digest("hex").slice(0, 16);
