// A time for people: the exact one, and how long ago that is. Nothing else in the dashboard shows a time.
import { absoluteTime, relativeTime } from "../parts/time-words.ts";
import { now, timeNow } from "./clock.ts";

interface TimeTextProps {
  /** In the API's format, or epoch ms; null shows "never", or `none`. */
  readonly at: string | number | null;
  readonly none?: string;
  /** Shown in place of how long ago it is. */
  readonly beside?: string;
}

/** In a table the two are one below the other. The tooltip has the time in UTC, as logs have it. */
export function TimeText({ at, none = "never", beside }: TimeTextProps) {
  if (at === null) return <span class="soft">{none}</span>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  const exact = new Date(ms).toISOString();
  return (
    <time class="both" dateTime={exact} title={exact}>
      <span>{absoluteTime(ms)}</span> <small>{beside ?? relativeTime(ms, Math.max(now.value, timeNow()))}</small>
    </time>
  );
}
