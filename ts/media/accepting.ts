// Where the media core accepts RTMP connections, and how it leaves that to the process that follows this one.
import type { MediaOptions as CoreOptions, MediaCore } from "#native";

/** Sockets that listen, as file descriptors of this process; null without RTMPS. */
export interface RtmpSockets {
  readonly plain: number;
  readonly tls: number | null;
}

export interface AcceptingOptions {
  /** Sockets that listen already, which whoever started this process has left to it: they stay open beside the core's
   *  own. By default the core binds its ports itself. */
  readonly rtmpSockets?: Partial<RtmpSockets>;
  /** Whether RTMP connections are accepted at once, the default, or from `startAccepting` on. */
  readonly accepts?: boolean;
}

export interface AcceptingMedia {
  /** What a successor inherits; closed by `stopAccepting`. */
  rtmpSockets(): RtmpSockets;
  /** Accepts RTMP connections from now on. */
  startAccepting(): void;
  /** Accepts no more, and closes the sockets: what waits in them is the successor's. Sessions stay. */
  stopAccepting(): void;
  /** Accepts connections of other nodes at one more port of an IP address, which stays open; 0 takes any free one.
   *  Throws with the code `pull_port_taken`, or what the system refuses. */
  acceptPulls(host: string, port: number): number;
}

export function acceptingOf(core: MediaCore): AcceptingMedia {
  return {
    rtmpSockets() {
      const sockets = core.rtmpSockets();
      if (sockets === null) throw new Error("the media core has stopped");
      return { plain: sockets.plain, tls: sockets.tls ?? null };
    },
    startAccepting: () => core.startAccepting(),
    stopAccepting: () => core.stopAccepting(),
    acceptPulls: (host, port) => core.acceptPulls(host, port),
  };
}

/** As the core takes them. */
export function acceptingOptions({
  rtmpSockets = {},
  accepts = true,
}: AcceptingOptions): Pick<CoreOptions, "rtmpSocket" | "rtmpTlsSocket" | "accepts"> {
  const { plain, tls = null } = rtmpSockets;
  return {
    accepts,
    ...(plain === undefined ? {} : { rtmpSocket: plain }),
    ...(tls === null ? {} : { rtmpTlsSocket: tls }),
  };
}
