// Output of commands: lines for people, one JSON value with `--json`. Standard output contains nothing else.
import { jsonText, printable } from "../text/terminal.ts";
import type { GivenFlags } from "./flags.ts";

/** Prints `value` as JSON with `--json`, else `lines`. */
export function print(flags: GivenFlags, value: unknown, lines: readonly string[]): void {
  if (flags.json === true) console.log(jsonText(value));
  else for (const line of lines) printLine(line);
}

/** Follows a list that is not complete. */
export const MORE = "There are more: --quantity N, or --all";

/** Prints one line for people. Texts of tenants in it cannot control the terminal. */
export function printLine(line: string): void {
  console.log(printable(line));
}

/** Rows with aligned columns. */
export function table(rows: readonly (readonly (string | number | null)[])[]): string[] {
  const cell = (value: string | number | null | undefined) => printable(String(value ?? "–"));
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
