// A stream name as a stranger sent it: as text that can be stored and shown, and as a hash for logs, where names are
// secrets.
import { createHash } from "node:crypto";

/** Longest name kept, characters. */
const NAME_LIMIT = 255;

/** What follows the first `?` are arguments, which may contain pass codes. */
export function nameWithoutArguments(sent: Uint8Array): Uint8Array {
  const end = sent.indexOf("?".charCodeAt(0));
  return end === -1 ? sent : sent.subarray(0, end);
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
