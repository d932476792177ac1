// Where streams are published to and played from, as callers of this deployment reach it.
import type { Config } from "../../config.ts";
import { withBrackets } from "../../network.ts";

export interface Ingest {
  /** `rtmp://{ingest_host}:<port>/live`. */
  readonly rtmpUrl: string;
  /** The WHIP endpoint. */
  readonly whipUrl: string;
}

/** `base`: where the HTTP port is reached, without a trailing slash. */
export function ingestAt(base: string, config: Pick<Config, "ingest">, rtmpPort: number): Ingest {
  const host = config.ingest.hosts[0] ?? new URL(base).hostname;
  return { rtmpUrl: `rtmp://${withBrackets(host)}:${rtmpPort}/live`, whipUrl: `${base}/p/webrtc` };
}
