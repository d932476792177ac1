// Players, and pulls: streams published on another node of the service and pulled from there for the players of this
// one.
import type { MediaCore } from "#native";

export type { PullSource, PullStatus } from "#native";

/** The player functions of the media core. */
export interface PlayMedia extends Pick<MediaCore, "pull" | "dialPull" | "pulls"> {
  /** Lets a player read a local publish. Another node of the service is not counted: neither as a player nor with its
   *  bytes. A `PlayEnded` follows in any case, also when the player is gone. */
  allowPlay(request: number, options: { readonly counted: boolean }): void;
}
