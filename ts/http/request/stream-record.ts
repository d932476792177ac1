// A stream as the API and the command line show it.
import type { StreamTable } from "../../store/schema.ts";
import type { Ingest } from "./ingest.ts";

/** The stream as callers see it (M9). */
export function streamRecord(stream: StreamTable, { rtmpUrl, rtmpsUrl, whipUrl }: Ingest) {
  const { id, name } = stream;
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
