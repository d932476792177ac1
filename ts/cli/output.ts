// Output of commands: lines for people, one JSON value with `--json`. Standard output contains nothing else.
import type { GivenFlags } from "./flags.ts";

/** Prints `value` as JSON with `--json`, else `lines`. */
export function print(flags: GivenFlags, value: unknown, lines: readonly string[]): void {
  if (flags.json === true) console.log(JSON.stringify(value, null, 2));
  else for (const line of lines) console.log(line);
}

/** Rows with aligned columns. */
export function table(rows: readonly (readonly (string | number | null)[])[]): string[] {
  const cell = (value: string | number | null | undefined) => String(value ?? "–");
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => cell(row[column]).length)));
  return rows.map((row) =>
    row
      .map((value, column) => cell(value).padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** A time of the store (epoch ms) for people. */
export function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
