// Percent-decoding of text from outside. Pure.

/** The decoded text; null when it is not percent-encoded UTF-8. */
export function percentDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
