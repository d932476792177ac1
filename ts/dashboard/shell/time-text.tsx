// A time as people read it, with the exact one behind it.
import { absoluteTime, relativeTime } from "../parts/time-words.ts";
import { now, timeNow } from "./clock.ts";

/** `at`: as the API says it, or epoch ms; null: "never", or what `none` says. */
export function TimeText({ at, none = "never" }: { readonly at: string | number | null; readonly none?: string }) {
  if (at === null) return <span class="soft">{none}</span>;
  const ms = typeof at === "number" ? at : Date.parse(at);
  return (
    <time dateTime={new Date(ms).toISOString()} title={absoluteTime(ms)}>
      {relativeTime(ms, Math.max(now.value, timeNow()))}
    </time>
  );
}
