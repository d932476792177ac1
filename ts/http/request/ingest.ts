// The URLs for publishing and playing, as callers of this deployment reach it.
import type { Config } from "../../config.ts";
import { withBrackets } from "../../network.ts";

export interface Ingest {
  /** `rtmp://{ingest_host}:<port>/live`; the same as `rtmpsUrl` if only RTMPS is served. */
  readonly rtmpUrl: string;
  /** `rtmps://…` in the same form; null when this Headgate has no certificate. */
  readonly rtmpsUrl: string | null;
  /** The WHIP endpoint. */
  readonly whipUrl: string;
}

/** The ports being served; `rtmp` is null if it is off, `rtmps` without a certificate. */
export interface IngestPorts {
  readonly rtmp: number | null;
  readonly rtmps: number | null;
}

/** `base`: base URL of the HTTP port, without a trailing slash. */
export function ingestAt(base: string, config: Pick<Config, "ingest">, { rtmp, rtmps }: IngestPorts): Ingest {
  const host = withBrackets(config.ingest.hosts[0] ?? new URL(base).hostname);
  const rtmpsUrl = rtmps === null ? null : `rtmps://${host}:${rtmps}/live`;
  return {
    rtmpUrl: rtmp === null && rtmpsUrl !== null ? rtmpsUrl : `rtmp://${host}:${rtmp}/live`,
    rtmpsUrl,
    whipUrl: `${base}/p/webrtc`,
  };
}
