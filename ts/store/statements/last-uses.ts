// When something was last used, in columns that are precise to the minute: a write per request would cost an fsync each.
import { RecentMap } from "../../limits/recent-map.ts";

/** Precision of `last_used_at` and `last_seen_at`, ms. */
export const LAST_USE_STEP_MS = 60_000;
/** Ids remembered; one that was forgotten is written again. */
const REMEMBERED_LIMIT = 10_000;

export class LastUses {
  readonly #written = new RecentMap<string, number>(REMEMBERED_LIMIT);

  /** Whether the use of `id` at `now`, epoch ms, is to be written: the first one of each minute. */
  take(id: string, now: number): boolean {
    // Also after the clock was set back.
    if (Math.abs(now - (this.#written.get(id) ?? 0)) < LAST_USE_STEP_MS) return false;
    this.#written.set(id, now);
    return true;
  }
}
