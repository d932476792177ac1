// A running publish as a row of a list, and the difference between two states of it.
import { CONDITIONS, conditionOf, upstreamCounts } from "../../publish/monitoring/health.ts";
import type { Measured } from "../../publish/monitoring/measurements.ts";
import { z } from "../openapi.ts";
import { FindingRecord, findingRecords } from "../records/finding.ts";
import { Numbers } from "../records/session.ts";
import { AudioTrack, audioRecord, VideoTrack, videoRecord } from "../records/tracks.ts";

const { bitrate_kbps, fps, loss_percent, rtt_ms } = Numbers.shape;

export const LiveRow = z
  .object({
    client_id: z.int(),
    stream: z.uuid(),
    streamname: z.string(),
    protocol: z.enum(["rtmp", "whip"]),
    on_air: z.boolean().openapi({ description: "false: on standby for the other publish of its stream" }),
    accepted_at: z.iso.datetime(),
    bitrate_kbps,
    fps,
    video: VideoTrack.nullable(),
    audio: AudioTrack.nullable(),
    players: z.int(),
    upstreams: z.object({ connected: z.int(), failing: z.int() }),
    loss_percent,
    rtt_ms,
    condition: z.enum(CONDITIONS).openapi({ description: "attention: needs checking; bad: broken" }),
    findings: z.array(FindingRecord).openapi({ description: "What is wrong with it, the worst first" }),
  })
  .openapi("LiveSession");
export type LiveRow = z.infer<typeof LiveRow>;
export type RowChange = Pick<LiveRow, "client_id"> & Partial<LiveRow>;

const NO_UPSTREAMS = { connected: 0, failing: 0 };

export function liveRow({ publish, snapshot, numbers, findings }: Measured): LiveRow {
  const { clientId, intent, protocol, acceptedAt } = publish;
  return {
    client_id: clientId,
    stream: intent.streamId,
    streamname: intent.name,
    protocol,
    on_air: publish.onAir,
    accepted_at: new Date(acceptedAt).toISOString(),
    bitrate_kbps: numbers.bitrateKbps,
    fps: numbers.fps,
    video: videoRecord(snapshot?.tracks.video ?? null),
    audio: audioRecord(snapshot?.tracks.audio ?? null),
    players: playersOf({ snapshot }),
    upstreams: snapshot === null ? NO_UPSTREAMS : upstreamCounts(snapshot),
    loss_percent: numbers.lossPercent,
    rtt_ms: numbers.rttMs,
    condition: conditionOf(findings),
    findings: findingRecords(findings),
  };
}

/** Number of players: an upstream being pushed to is a subscriber too, so it is subtracted. */
export function playersOf({ snapshot }: Pick<Measured, "snapshot">): number {
  if (snapshot === null) return 0;
  return Math.max(0, snapshot.subscribers - upstreamCounts(snapshot).connected);
}

/** The members that differ, with the client id; null when none do. */
export function changeOf(before: LiveRow, now: LiveRow): RowChange | null {
  const changed = Object.entries(now).filter(([name, value]) => !isSame(before[name as keyof LiveRow], value));
  return changed.length === 0 ? null : { client_id: now.client_id, ...Object.fromEntries(changed) };
}

/** Compares plain values, or objects and lists of them. */
function isSame(before: unknown, now: unknown): boolean {
  if (before === now) return true;
  if (typeof before !== "object" || typeof now !== "object" || before === null || now === null) return false;
  if (Array.isArray(before) && Array.isArray(now) && before.length !== now.length) return false;
  const members = before as Readonly<Record<string, unknown>>;
  return Object.entries(now).every(([name, value]) => isSame(members[name], value));
}
