// What becomes of a publish's upstreams and players when its publisher is lost. Shapes mirror crates/bridge.
import type { HoldOptions } from "#native";

/** What the media core is told of a publish that is allowed. */
export interface Hold {
  /** How long its upstreams and players are held when the publisher is lost, ms; 0: not at all. */
  readonly windowMs: number;
  /** Client id of a lost publish: its upstreams and players are taken over, if they are still held; null for none. */
  readonly continues: number | null;
}

export interface HoldMedia {
  /** Ends the upstreams and players of a publish that was lost, if they are held. A `HoldEnded` tells that they have. */
  release(clientId: number): void;
}

/** Nothing is held, and nothing was. */
export const NO_HOLD: Hold = { windowMs: 0, continues: null };

export function holdOptions({ windowMs, continues }: Hold): HoldOptions {
  return { windowMs, ...(continues === null ? {} : { continues }) };
}
