// What becomes of a publish's upstreams and players when its publisher is lost. Shapes mirror crates/bridge.
import type { HoldOptions } from "#native";

/** What the media core is told of a publish that is allowed. */
export interface Hold {
  /** How long its upstreams and players are held when the publisher is lost, ms; 0: not at all. */
  readonly windowMs: number;
  /** Client id of a lost publish: its upstreams and players are taken over, if they are still held; null for none. */
  readonly continues: number | null;
  /** The other publish of its name, if there is one: while that is on air this one stands by, and nobody gets anything
   *  of it. */
  readonly beside?: { readonly clientId: number; readonly name: string };
}

export interface HoldMedia {
  /** Puts one of two publishes of a name on air, on the connections of the other, at once or at its next keyframe; an
   *  `OnAirChanged` of each follows. One that is on air stays there. */
  switchTo(clientId: number): void;
  /** Ends the upstreams and players of a publish that was lost, if they are held. A `HoldEnded` tells that they have. */
  release(clientId: number): void;
}

/** The same of the core. */
export function holdMedia(core: HoldMedia): HoldMedia {
  return {
    switchTo: (clientId) => core.switchTo(clientId),
    release: (clientId) => core.release(clientId),
  };
}

/** Nothing is held, and nothing was. */
export const NO_HOLD: Hold = { windowMs: 0, continues: null };

export function holdOptions({ windowMs, continues, beside }: Hold): HoldOptions {
  return {
    windowMs,
    ...(continues === null ? {} : { continues }),
    ...(beside && { beside: beside.clientId, name: Buffer.from(beside.name) }),
  };
}
