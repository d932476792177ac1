// The sockets on which the media core accepts RTMP connections, and their handover to the successor process.
import type { MediaCore, RtmpSockets } from "#native";

export interface AcceptingOptions {
  /** Listening sockets inherited from the parent process: they stay open beside the core's own. By default the core
   *  binds its ports itself. */
  readonly rtmpSockets?: Partial<RtmpSockets>;
  /** Whether RTMP connections are accepted immediately, the default, or from `startAccepting` on. */
  readonly accepts?: boolean;
}

export type AcceptingMedia = Pick<MediaCore, "rtmpSockets" | "startAccepting" | "stopAccepting" | "acceptPulls">;
