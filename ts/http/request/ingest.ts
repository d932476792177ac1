// The URLs for publishing and playing, as callers of this deployment reach it.
import type { Config } from "../../config.ts";
import { withBrackets } from "../../network.ts";

export interface Ingest {
  /** `rtmp://{ingest_host}:<port>/live`. */
  readonly rtmpUrl: string;
  /** `rtmps://…` in the same form; null when this Headgate has no certificate. */
  readonly rtmpsUrl: string | null;
  /** The WHIP endpoint. */
  readonly whipUrl: string;
}

/** The ports being served; `rtmps` is null without a certificate. */
export interface IngestPorts {
  readonly rtmp: number;
  readonly rtmps: number | null;
}

/** `base`: base URL of the HTTP port, without a trailing slash. */
export function ingestAt(base: string, config: Pick<Config, "ingest">, { rtmp, rtmps }: IngestPorts): Ingest {
  const host = withBrackets(config.ingest.hosts[0] ?? new URL(base).hostname);
  return {
    rtmpUrl: `rtmp://${host}:${rtmp}/live`,
    rtmpsUrl: rtmps === null ? null : `rtmps://${host}:${rtmps}/live`,
    whipUrl: `${base}/p/webrtc`,
  };
}
