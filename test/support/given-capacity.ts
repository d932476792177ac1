// A node whose free room the test sets.
import type { Capacity, Place, Refused } from "../../ts/capacity/capacity.ts";

export const WAIT_S = 4;

export class GivenCapacity implements Capacity {
  /** Why there is no room; null if there is. */
  full: string | null = null;
  /** Number of refusals. */
  refused = 0;
  /** Places in use: of publishes being set up, and of running ones. */
  readonly settingUp = new Set<Place>();
  readonly running = new Set<Place>();

  start(): void {}
  problem(): string | null {
    return this.full && `full: ${this.full}`;
  }
  refusal(): Refused | null {
    if (this.full === null) return null;
    this.refused += 1;
    return { retryAfterS: WAIT_S };
  }
  take(): Place | Refused {
    const refused = this.refusal();
    if (refused !== null) return refused;
    const place: Place = {
      turn: async () => {},
      pause() {},
      started: () => {
        this.settingUp.delete(place);
        this.running.add(place);
      },
      release: () => {
        this.settingUp.delete(place);
        this.running.delete(place);
      },
    };
    this.settingUp.add(place);
    return place;
  }
  stop(): void {}
}
