// Which changes of state are reported: each once, and none too soon after the one before. What changes back meanwhile is
// never reported, so a state that comes and goes raises one alert in `PAUSE_MS`. Pure; times in epoch ms.
import { RecentMap } from "../../limits/recent-map.ts";
import { Bucket } from "../limits/bucket.ts";

/** Between two alerts about the same thing of a stream, or about an organisation's webhook. */
export const PAUSE_MS = 60_000;
/** Alerts of one organisation on average, per second, and three times as many at once; further changes are reported later,
 *  if they last. */
const PER_SECOND = 5;
/** Things of which the last alert is remembered; the ones reported longest ago are forgotten first. */
const REMEMBERED_LIMIT = 20_000;

interface Reported {
  readonly isBad: boolean;
  /** Which publish it was about; 0: none. */
  readonly clientId: number;
  readonly at: number;
}

export class AlertStates {
  readonly #reported = new RecentMap<string, Reported>(REMEMBERED_LIMIT);
  readonly #buckets = new RecentMap<string, Bucket>(REMEMBERED_LIMIT);

  /** Whether it is to be reported now that `what` of the organisation is in this state; if so, it counts as reported. A new
   *  publish begins in a good state. */
  report(organisation: string, what: string, isBad: boolean, clientId: number, now: number): boolean {
    const key = `${organisation} ${what}`;
    const known = this.#reported.get(key);
    const wasBad = known?.isBad === true && known.clientId === clientId;
    if (wasBad === isBad) return false;
    // A time in the future means that the clock was set back.
    if (known !== undefined && now >= known.at && now < known.at + PAUSE_MS) return false;
    if (this.#bucketOf(organisation, now).take(now) !== null) return false;
    this.#reported.set(key, { isBad, clientId, at: now });
    return true;
  }

  #bucketOf(organisation: string, now: number): Bucket {
    const bucket = this.#buckets.get(organisation) ?? new Bucket(PER_SECOND, now);
    this.#buckets.set(organisation, bucket);
    return bucket;
  }
}
