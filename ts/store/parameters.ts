// What a statement may be given, the same on both stores.

/** What both stores take: libsql ends the process on a boolean. Whole numbers arrive as integers. */
export type Parameter = string | number | bigint | null;

/** Refuses here what would end the process, be altered or be refused only by one store: booleans, objects, text with
 *  NUL or half a character. Throws `TypeError`. */
export function bindable(value: unknown): Parameter {
  if (value === null || typeof value === "number" || typeof value === "bigint") return value;
  if (typeof value === "string" && !value.includes("\0") && value.isWellFormed()) return value;
  throw new TypeError(
    `the store does not accept ${typeof value === "string" ? "text with NUL or lone surrogates" : typeof value}`,
  );
}
