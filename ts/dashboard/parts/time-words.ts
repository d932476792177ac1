// Formats times and amounts for people. Pure: the time is an argument.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Up to here days are counted, then months of so many days, and years. */
const MONTHS_FROM_DAYS = 60;
const MONTH_DAYS = 30.44;
const YEAR_DAYS = 365;
/** Assumed largest difference between the browser's clock and the service's. */
const SKEW_MS = 10_000;

/** "just now", "3 min ago", "in 2 h", "5 days ago", "4 months ago". */
export function relativeTime(at: number, now: number): string {
  const away = Math.abs(now - at);
  const said = (amount: string) => (at <= now ? `${amount} ago` : `in ${amount}`);
  if (away < MINUTE_MS) return at <= now + SKEW_MS ? "just now" : "in a moment";
  if (away < HOUR_MS) return said(`${Math.floor(away / MINUTE_MS)} min`);
  if (away < DAY_MS) return said(`${Math.floor(away / HOUR_MS)} h`);
  const days = Math.floor(away / DAY_MS);
  if (days < MONTHS_FROM_DAYS) return said(counted(days, "day"));
  if (days < YEAR_DAYS) return said(counted(Math.floor(days / MONTH_DAYS), "month"));
  return said(counted(Math.floor(days / YEAR_DAYS), "year"));
}

/** One for all: making a formatter takes longer than using it. */
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** The full date and time, in the browser's own language and time zone. The one format of times in the dashboard. */
export function absoluteTime(at: number): string {
  return dateAndTime.format(at);
}

const timeToMinutes = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
const timeToSeconds = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** The time of `absoluteTime` for the axis of a graph, whose marks are so many seconds apart. */
export function axisTime(at: number, stepS: number): string {
  return (stepS < 60 ? timeToSeconds : timeToMinutes).format(at);
}

/** "3:07", "1:02:03". */
export function durationWords(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const two = (number: number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** "812 kB", "1.62 GB"; decimal units, as networks count. */
export function bytesWords(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = bytes;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/** "850 kbps", "2.4 Mbps". */
export function bitrateWords(kbps: number): string {
  return kbps < 1_000 ? `${Math.round(kbps)} kbps` : `${(kbps / 1_000).toFixed(1)} Mbps`;
}

/** "1 stream", "4 streams". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}
