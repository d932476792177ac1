// Streams as `headgate stream` prints them: the records of the API (M9), with their publish keys.
import type { Config } from "../config.ts";
import { ingestAt } from "../http/request/ingest.ts";
import { shownKeys, streamRecord } from "../http/request/stream-record.ts";
import { readSettings } from "../organisation/settings.ts";
import { createPublishKeys, needsKey } from "../publish/key/publish-key.ts";
import type { StreamTable } from "../store/schema.ts";
import { openSecretBoxOf } from "../store/secret-box.ts";
import { configuredUrl } from "./asking.ts";
import type { AtStore } from "./at-store.ts";
import type { GivenFlags } from "./flags.ts";

/** The records of streams of one organisation. Rejects with `StoreUnavailable` when a publish key is needed and
 *  `headgate.key` is missing. */
export async function recordsOf(at: AtStore, flags: GivenFlags, streams: readonly StreamTable[]) {
  const { db, config, now } = at;
  const [first] = streams;
  if (first === undefined) return [];
  const settings = await readSettings(db, first.organisation_id);
  const isKeyed = streams.some((stream) => needsKey(stream, settings));
  const keys = isKeyed ? createPublishKeys(await openSecretBoxOf(db, config.dataDir)) : { of: () => "" };
  const keyOf = shownKeys(keys, settings);
  const ingest = ingestOf(config, flags);
  return streams.map((stream) => streamRecord(stream, { ingest, key: keyOf(stream), now }));
}

export async function recordOf(at: AtStore, flags: GivenFlags, stream: StreamTable) {
  const [record] = await recordsOf(at, flags, [stream]);
  if (record === undefined) throw new TypeError("one stream has one record");
  return record;
}

/** URLs with the host of `--url`, else the configured one. */
function ingestOf(config: Config, flags: GivenFlags) {
  const said = typeof flags.url === "string" && URL.canParse(flags.url) ? new URL(flags.url).origin : null;
  const ports = { rtmp: config.rtmp.port, rtmps: config.rtmp.tls?.port ?? null };
  return ingestAt(said ?? config.http.publicUrl ?? configuredUrl(config), config, ports);
}
