// A stream as the API and the command line show it.
import type { Context } from "hono";
import type { Config } from "../../config.ts";
import { refusedUntil } from "../../publish/ending/refused-streams.ts";
import type { StreamTable } from "../../store/schema.ts";
import { type Ingest, type IngestPorts, ingestAt } from "./ingest.ts";
import { baseUrlOf } from "./request.ts";

export interface RecordDeps {
  readonly clock: { now(): number };
  readonly config: Pick<Config, "http" | "ingest">;
  readonly ingestPorts: () => IngestPorts;
}

/** The stream with the addresses at which the caller reaches this service. */
export function recordOf(c: Context, stream: StreamTable, { clock, config, ingestPorts }: RecordDeps) {
  return streamRecord(stream, ingestAt(baseUrlOf(c, config), config, ingestPorts()), clock.now());
}

/** The stream as callers see it (M9). */
export function streamRecord(stream: StreamTable, { rtmpUrl, rtmpsUrl, whipUrl }: Ingest, now: number) {
  const { id, name } = stream;
  const refused = refusedUntil(stream, now);
  const whipQuery = `stream_name=${encodeURIComponent(name)}&stream_url=${encodeURIComponent(rtmpUrl)}`;
  return {
    id,
    streamgroup: id,
    state: stream.state,
    type: "low-latency",
    created_at: new Date(Number(stream.created_at)).toISOString(),
    updated_at: new Date(Number(stream.updated_at)).toISOString(),
    tags: JSON.parse(stream.tags) as readonly string[],
    hold_s: stream.hold_s === null ? null : Number(stream.hold_s),
    refused_until: refused === null ? null : new Date(refused).toISOString(),
    webrtc: true,
    transcoding: false,
    ingest: {
      rtmp: { url: rtmpUrl, streamname: name },
      rtmps: rtmpsUrl === null ? null : { url: rtmpsUrl, streamname: name },
      whip: { url: `${whipUrl}?${whipQuery}` },
    },
    playout: { rtmp: [{ url: rtmpUrl, streamname: name, type: "live" }], hls: [], web: [] },
  };
}
