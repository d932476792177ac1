// What happens to a publish's upstreams and players when its publisher is lost.
import type { Hold, MediaCore } from "#native";

export type { Hold };

/** How long an RTMP publisher may send nothing unless the gateway says otherwise (W19), ms. */
export const SILENCE_MS = 15_000;

/** Nothing is held or taken over. */
export const NO_HOLD: Hold = { windowMs: 0, continues: null };

export type HoldMedia = Pick<MediaCore, "switchTo" | "release">;
