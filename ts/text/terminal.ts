// Text for a terminal: what tenants, upstreams and customers' servers wrote must not control the operator's terminal.

/** C0 and C1 controls and DEL, which move the cursor, change the title or write to the clipboard, and the characters
 *  that reverse the order of others (Unicode Technical Report 36, 3.4). */
const CONTROLS = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** One line of text with its control characters shown, not obeyed: `\u{1b}`. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (control) => `\\u{${control.codePointAt(0)?.toString(16)}}`);
}

/** A value as JSON that is as harmless on a terminal, and the same value to a parser. */
export function jsonText(value: unknown): string {
  const escaped = (control: string) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value, null, 2).replace(CONTROLS, (control) => (control === "\n" ? control : escaped(control)));
}

/** One line of JSON whose strings, once parsed, contain no control characters except line breaks and tabs. */
export function printableJson(line: string): string {
  // An escaped backslash is skipped, so that what follows it is not taken for an escape.
  const escaped = line.replace(/\\\\|\\(?=[bf]|u00[01][0-9a-f])/gi, (found) => (found === "\\" ? "\\\\" : found));
  return escaped.replace(CONTROLS, (control) => (control === "\n" ? control : `\\${printable(control)}`));
}
