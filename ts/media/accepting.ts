// The sockets on which the media core accepts RTMP connections, and their handover to the successor process.
import type { MediaOptions as CoreOptions, MediaCore } from "#native";

/** Listening sockets, as file descriptors of this process; null for a port that is not served. */
export interface RtmpSockets {
  readonly plain: number | null;
  readonly tls: number | null;
}

export interface AcceptingOptions {
  /** Listening sockets inherited from the parent process: they stay open beside the core's own. By default the core
   *  binds its ports itself. */
  readonly rtmpSockets?: Partial<RtmpSockets>;
  /** Whether RTMP connections are accepted immediately, the default, or from `startAccepting` on. */
  readonly accepts?: boolean;
}

export interface AcceptingMedia {
  /** The sockets that a successor inherits; `stopAccepting` closes them. */
  rtmpSockets(): RtmpSockets;
  /** Starts accepting RTMP connections. */
  startAccepting(): void;
  /** Stops accepting, and closes the sockets: pending connections go to the successor. Sessions continue. */
  stopAccepting(): void;
  /** Accepts connections of other nodes on one more port of an IP address, which stays open; 0 takes any free one.
   *  Throws with the code `pull_port_taken`, or the system's error. */
  acceptPulls(host: string, port: number): number;
}

export function acceptingOf(core: MediaCore): AcceptingMedia {
  return {
    rtmpSockets() {
      const sockets = core.rtmpSockets();
      if (sockets === null) throw new Error("the media core has stopped");
      return { plain: sockets.plain ?? null, tls: sockets.tls ?? null };
    },
    startAccepting: () => core.startAccepting(),
    stopAccepting: () => core.stopAccepting(),
    acceptPulls: (host, port) => core.acceptPulls(host, port),
  };
}

/** In the form the core expects. */
export function acceptingOptions({
  rtmpSockets = {},
  accepts = true,
}: AcceptingOptions): Pick<CoreOptions, "rtmpSocket" | "rtmpTlsSocket" | "accepts"> {
  const { plain = null, tls = null } = rtmpSockets;
  return {
    accepts,
    ...(plain === null ? {} : { rtmpSocket: plain }),
    ...(tls === null ? {} : { rtmpTlsSocket: tls }),
  };
}
