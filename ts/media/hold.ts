// What happens to a publish's upstreams and players when its publisher is lost. Shapes mirror crates/bridge.
import type { HoldOptions } from "#native";

/** How long an RTMP publisher may send nothing unless the gateway says otherwise (W19), ms. */
export const SILENCE_MS = 15_000;

/** Options that the media core receives with an allowed publish. */
export interface Hold {
  /** How long its upstreams and players are held when the publisher is lost, ms; 0: not at all. */
  readonly windowMs: number;
  /** How long an RTMP publisher may send nothing before it counts as lost, ms; missing: `SILENCE_MS`. */
  readonly silenceMs?: number;
  /** Client id of a lost publish: its upstreams and players are taken over if they are still held; null for none. */
  readonly continues: number | null;
  /** Client id of the other publish of its name, if there is one: while that is on air this one is on standby, and nobody
   *  receives it. */
  readonly beside?: number;
}

export interface HoldMedia {
  /** Puts one of two publishes of a name on air, on the connections of the other, immediately or at its next
   *  keyframe; an `OnAirChanged` of each follows. No effect on one that is already on air. */
  switchTo(clientId: number): void;
  /** Ends the upstreams and players of a lost publish, if they are held; a `HoldEnded` follows. */
  release(clientId: number): void;
}

/** Delegates to the core. */
export function holdMedia(core: HoldMedia): HoldMedia {
  return {
    switchTo: (clientId) => core.switchTo(clientId),
    release: (clientId) => core.release(clientId),
  };
}

/** Nothing is held or taken over. */
export const NO_HOLD: Hold = { windowMs: 0, continues: null };

export function holdOptions({ windowMs, silenceMs, continues, beside }: Hold): HoldOptions {
  return {
    windowMs,
    ...(silenceMs !== undefined && { silenceMs }),
    ...(continues === null ? {} : { continues }),
    ...(beside !== undefined && { beside }),
  };
}
