// Rows for the table that `npm run matrix` prints at the end.
import { appendFileSync } from "node:fs";

export interface Row {
  readonly row: string;
  readonly column: string;
  /** `cannot`: the program has no such case, and `said` is the reason. */
  readonly verdict: "passed" | "FAILED" | "cannot";
  /** Figures, or the fault. */
  readonly said: string;
}

/** Adds a row to the file named by the run; without one no table is printed. */
export function report(row: Row): void {
  const file = process.env.HEADGATE_MATRIX_REPORT;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(row)}\n`);
}
