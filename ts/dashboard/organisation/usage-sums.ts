// Sums of usage: by day for the graph, by stream for the table. Pure.
import type { Records } from "../../client/index.ts";

export type UsageRow = Records["Usage"]["days"][number];

const DAY_MS = 86_400_000;

interface Bytes {
  readonly bytes_in: number;
  readonly bytes_out: number;
}

/** Every day from `from` to `to` (days in UTC, YYYY-MM-DD), including those without traffic. */
export function byDay(
  rows: readonly UsageRow[],
  from: string,
  to: string,
): readonly (Bytes & { readonly day: string })[] {
  const sums = added(rows, ({ day }) => day);
  const days: (Bytes & { day: string })[] = [];
  for (let at = Date.parse(`${from}T00:00:00Z`); at <= Date.parse(`${to}T00:00:00Z`); at += DAY_MS) {
    const day = dayOf(at);
    days.push({ day, ...(sums.get(day) ?? { bytes_in: 0, bytes_out: 0 }) });
  }
  return days;
}

/** All streams, those with the most bytes first. */
export function byStream(
  rows: readonly UsageRow[],
): readonly (Bytes & { readonly stream: string; readonly streamname: string })[] {
  const names = new Map(rows.map(({ stream, streamname }) => [stream, streamname]));
  return [...added(rows, ({ stream }) => stream)]
    .map(([stream, bytes]) => ({ stream, streamname: names.get(stream) ?? "", ...bytes }))
    .sort((a, b) => b.bytes_in + b.bytes_out - a.bytes_in - a.bytes_out);
}

/** The day in a page's address; null for what is none. */
export function dayIn(text = ""): string | null {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) ? text : null;
}

/** A day in UTC, in the API's format. `at`: epoch ms. */
export function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, "2026-01-31".length);
}

/** The first day of a span of `days` days that ends with `to`. */
export function firstDayOf(days: number, to: string): string {
  return dayOf(Date.parse(`${to}T00:00:00Z`) - (days - 1) * DAY_MS);
}

function added(rows: readonly UsageRow[], keyOf: (row: UsageRow) => string): ReadonlyMap<string, Bytes> {
  const sums = new Map<string, Bytes>();
  for (const row of rows) {
    const before = sums.get(keyOf(row));
    sums.set(keyOf(row), {
      bytes_in: (before?.bytes_in ?? 0) + row.bytes_in,
      bytes_out: (before?.bytes_out ?? 0) + row.bytes_out,
    });
  }
  return sums;
}
