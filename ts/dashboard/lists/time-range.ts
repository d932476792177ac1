// A span of time by which a list is filtered: in the page's address, in the fields, in a request, and those that are one
// press away. Pure: the time is an argument.

/** Epoch ms: from the first on, and before the second; null: no limit. */
export interface TimeRange {
  readonly from: number | null;
  readonly to: number | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The span in a page's address; what is not a time is ignored. */
export function rangeOf({ from = "", to = "" }: Readonly<Record<string, string | undefined>>): TimeRange {
  return { from: timeOf(from), to: timeOf(to) };
}

function timeOf(text: string): number | null {
  const ms = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

/** As in a page's address and in a request: in UTC, without seconds that are 0. */
export function rangeTexts({ from, to }: TimeRange): { readonly from: string; readonly to: string } {
  const text = (ms: number | null) => (ms === null ? "" : new Date(ms).toISOString().replace(/(:00)?\.000Z$/, "Z"));
  return { from: text(from), to: text(to) };
}

/** Of a request. */
export function rangeQuery(range: TimeRange): { readonly from?: string; readonly to?: string } {
  const { from, to } = rangeTexts(range);
  return { ...(from === "" ? {} : { from }), ...(to === "" ? {} : { to }) };
}

/** The value of a field for date and time, which has no time zone: in the browser's. */
export function fieldOf(ms: number | null): string {
  if (ms === null) return "";
  const local = new Date(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  const date = [String(local.getFullYear()).padStart(4, "0"), two(local.getMonth() + 1), two(local.getDate())];
  return `${date.join("-")}T${two(local.getHours())}:${two(local.getMinutes())}`;
}

/** What is in such a field. */
export const ofField = (text: string): number | null => timeOf(text);

/** The spans that are chosen most. */
export function quickRanges(now: number): readonly (readonly [title: string, range: TimeRange])[] {
  const since = (hours: number): TimeRange => ({
    from: Math.floor((now - hours * HOUR_MS) / MINUTE_MS) * MINUTE_MS,
    to: null,
  });
  const today = midnight(now, 0);
  return [
    ["Last hour", since(1)],
    ["Last 24 hours", since(24)],
    ["Today", { from: today, to: null }],
    ["Yesterday", { from: midnight(now, 1), to: today }],
    ["Last 7 days", since(7 * 24)],
  ];
}

/** When the day began so many days ago, in the browser's time zone. */
function midnight(now: number, days: number): number {
  const day = new Date(now);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate() - days).getTime();
}
