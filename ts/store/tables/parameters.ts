// Validates the parameters of statements, alike for both stores.

/** Types that both stores accept: libsql aborts the process on a boolean. Whole numbers arrive as integers. */
export type Parameter = string | number | bigint | null;

/** Rejects values that would abort the process, be altered, or be refused by only one store: booleans, objects, text
 *  with NUL or an unpaired surrogate. Throws `TypeError`. */
export function bindable(value: unknown): Parameter {
  if (value === null || typeof value === "number" || typeof value === "bigint") return value;
  if (typeof value === "string" && !value.includes("\0") && value.isWellFormed()) return value;
  throw new TypeError(
    `the store does not accept ${typeof value === "string" ? "text with NUL or lone surrogates" : typeof value}`,
  );
}
