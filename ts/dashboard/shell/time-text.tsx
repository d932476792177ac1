// A time formatted for people, with the exact one as a tooltip.
import { absoluteTime, relativeTime } from "../parts/time-words.ts";
import { now, timeNow } from "./clock.ts";

/** `at`: in the API's format, or epoch ms; null shows "never", or `none`. */
export function TimeText({ at, none = "never" }: { readonly at: string | number | null; readonly none?: string }) {
  if (at === null) return <span class="soft">{none}</span>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={absoluteTime(ms)}>
      {relativeTime(ms, Math.max(now.value, timeNow()))}
    </time>
  );
}
