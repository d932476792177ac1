// A stream as the API and the command line show it.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import type { Config } from "../../config.ts";
import type { Caller } from "../../organisation/callers.ts";
import { readSettings } from "../../organisation/settings.ts";
import { refusedUntil } from "../../publish/ending/refused-streams.ts";
import { needsKey, type PublishKeys } from "../../publish/key/publish-key.ts";
import type { Schema, StreamTable } from "../../store/schema.ts";
import { type Ingest, type IngestPorts, ingestAt } from "./ingest.ts";
import { baseUrlOf } from "./request.ts";

/** Shown in place of the publish key to those who may not publish. */
const HIDDEN = "…";

export interface RecordDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly config: Pick<Config, "http" | "ingest">;
  readonly ingestPorts: () => IngestPorts;
  readonly publishKeys: PublishKeys;
}

/** The stream with the addresses at which the caller reaches this service. */
export async function recordOf(c: Context, caller: Caller, stream: StreamTable, deps: RecordDeps) {
  return (await recorder(c, caller, deps))(stream);
}

/** Makes the records of streams of the caller's organisation. */
export async function recorder(c: Context, { organisation, role }: Caller, deps: RecordDeps) {
  const { db, clock, config, ingestPorts, publishKeys } = deps;
  const ingest = ingestAt(baseUrlOf(c, config), config, ingestPorts());
  const keys = role === "readonly" ? { of: () => HIDDEN } : publishKeys;
  const keyOf = shownKeys(keys, await readSettings(db, organisation.id));
  return (stream: StreamTable) => streamRecord(stream, { ingest, key: keyOf(stream), now: clock.now() });
}

/** The publish key of a stream whose publishes need one, else null. */
export function shownKeys(keys: Pick<PublishKeys, "of">, settings: { readonly publish_key: boolean }) {
  return (stream: StreamTable): string | null => (needsKey(stream, settings) ? keys.of(stream) : null);
}

/** The stream as callers see it (M9). `key`: its publish key; null when publishes need none. */
export function streamRecord(
  stream: StreamTable,
  { ingest, key, now }: { readonly ingest: Ingest; readonly key: string | null; readonly now: number },
) {
  const { id, name } = stream;
  const { rtmpUrl, rtmpsUrl, whipUrl } = ingest;
  const refused = refusedUntil(stream, now);
  const streamKey = key === null ? name : `${name}?key=${key}`;
  const whipQuery = `stream_name=${encodeURIComponent(streamKey)}&stream_url=${encodeURIComponent(rtmpUrl)}`;
  const rtmp = (url: string) => ({ url, streamname: name, stream_key: streamKey });
  return {
    id,
    streamgroup: id,
    state: stream.state,
    type: "low-latency",
    created_at: new Date(Number(stream.created_at)).toISOString(),
    updated_at: new Date(Number(stream.updated_at)).toISOString(),
    tags: JSON.parse(stream.tags) as readonly string[],
    hold_s: stream.hold_s === null ? null : Number(stream.hold_s),
    publish_key: stream.publish_key === null ? null : Number(stream.publish_key) !== 0,
    refused_until: refused === null ? null : new Date(refused).toISOString(),
    webrtc: true,
    transcoding: false,
    ingest: {
      rtmp: rtmp(rtmpUrl),
      rtmps: rtmpsUrl === null ? null : rtmp(rtmpsUrl),
      whip: { url: `${whipUrl}?${whipQuery}` },
      key,
    },
    playout: { rtmp: [{ url: rtmpUrl, streamname: name, type: "live" }], hls: [], web: [] },
  };
}
