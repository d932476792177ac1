// A running publish as callers see it: the record of GET /session, and the longer one of GET /session/{client_id}.
import { IRREGULARITIES, UPSTREAM_SOURCES, UPSTREAM_STATES } from "../../media/codes.ts";
import { PROTOCOLS } from "../../media/protocols.ts";
import type { PlayerStatus } from "../../media.ts";
import type { LiveSession, LiveUpstream } from "../../publish/live-sessions.ts";
import { irregularityWords } from "../../publish/monitoring/irregularities.ts";
import type { Numbers as Measured } from "../../publish/monitoring/numbers.ts";
import { Time, z } from "../openapi.ts";
import { FindingRecord, findingRecords } from "./finding.ts";
import { AudioTrack, audioRecord, VideoTrack, videoRecord } from "./tracks.ts";
import { UpstreamCause } from "./upstream.ts";

export const SessionUpstream = z
  .object({
    id: z.string().openapi({ description: "For an upstream of the stream, its id in GET /stream/{id}/upstream" }),
    label: z.string().nullable().openapi({ description: "The label it was given; null for none" }),
    url: z.string().openapi({ description: "Without credentials, stream key and arguments" }),
    masked_key: z.string().openapi({ description: "The beginning of its stream key", example: "ab…" }),
    source: z.enum(UPSTREAM_SOURCES),
    state: z.enum(UPSTREAM_STATES),
    since: Time,
    last_error: z
      .string()
      .nullable()
      .openapi({ description: "Why the push last stopped, in words; null if it never has" }),
    last_cause: UpstreamCause.nullable().openapi({ description: "The same by name" }),
    bytes_out: z.int(),
    dropped_frames: z.int(),
    reconnects: z.int(),
    audio_error: z
      .string()
      .nullable()
      .openapi({ description: "Why the upstream gets no audio unless it accepts Opus; null when there is no problem" }),
  })
  .openapi("SessionUpstream");
const sessionShape = {
  client_id: z.int().openapi({ description: "clientid of the webhook" }),
  stream: z.uuid(),
  streamname: z.string(),
  protocol: z.enum(PROTOCOLS),
  address: z.string(),
  accepted_at: Time,
  continues: z.int().nullable().openapi({
    description: "client_id of the lost publish whose upstreams and players this one took over; null for none",
  }),
  backup: z
    .boolean()
    .openapi({ description: "Whether it was published as the backup of its stream: see publish.backup_argument" }),
  on_air: z.boolean().openapi({
    description: "true: upstreams and players receive it; false: on standby for the other publish of its stream",
  }),
  timestamp_ms: z.number(),
  bytes_in: z.int(),
  bytes_out: z.int(),
  dropped_frames: z.int(),
  subscribers: z.int(),
  max_bitrate_kbps: z
    .int()
    .openapi({ description: "Bitrate limit sent to the broadcaster; 0: no limit, or RTMP, which cannot carry one" }),
  tracks: z.object({
    video: VideoTrack.nullable(),
    audio: AudioTrack.nullable(),
  }),
  upstreams: z.array(SessionUpstream),
  transcoder_error: z.string().nullable().openapi({
    description:
      "Why the audio is not transcoded to AAC although a player or an upstream needs AAC; null when there is no problem",
  }),
  findings: z
    .array(FindingRecord)
    .openapi({ description: "What is wrong with it at its last reading, at most five seconds ago; the worst first" }),
};
const Player = z
  .object({ address: z.string(), since: Time, bytes_out: z.int(), dropped_frames: z.int() })
  .openapi("SessionPlayer");
export const Session = z.object(sessionShape).openapi("Session");
/** Current measurements of a publish. */
export const Numbers = z
  .object({
    bitrate_kbps: z.int().nullable().openapi({ description: "Audio and video from the broadcaster" }),
    fps: z.number().nullable().openapi({ description: "Video frames per second" }),
    gop_ms: z.int().nullable().openapi({ description: "Time between the two newest keyframes" }),
    loss_percent: z.number().nullable().openapi({ description: "WHIP packets lost and not recovered" }),
    rtt_ms: z.int().nullable().openapi({ description: "Round-trip time to the broadcaster" }),
    skew_ms: z
      .int()
      .nullable()
      .openapi({ description: "Offset between video and audio; positive: the video is early" }),
  })
  .openapi("SessionNumbers", { description: "Each value is null while it is not known" });
const IrregularityRecord = z
  .object({
    code: z.enum(IRREGULARITIES),
    count: z.int(),
    text: z.string().openapi({ description: "What was found, and what was done about it" }),
  })
  .openapi("SessionIrregularity");
export const SessionWithDiagnostics = z
  .object({
    ...sessionShape,
    numbers: Numbers,
    players: z.array(Player).openapi({ description: "Its players, oldest first; at most a thousand" }),
    irregularities: z.array(IrregularityRecord).openapi({
      description: "What was irregular about the broadcaster's media and was tolerated, repaired or left out",
    }),
    diagnostics: z
      .unknown()
      .openapi({ description: "Transport diagnostics of the protocol; null when there are none" }),
  })
  .openapi("SessionWithDiagnostics");

export function sessionRecord(session: LiveSession): z.infer<typeof Session> {
  return {
    client_id: session.clientId,
    stream: session.streamId,
    streamname: session.name,
    protocol: session.protocol,
    address: session.address,
    accepted_at: new Date(session.acceptedAt).toISOString(),
    continues: session.continues,
    backup: session.backup,
    on_air: session.onAir,
    timestamp_ms: session.timestampMs,
    bytes_in: session.bytesIn,
    bytes_out: session.bytesOut,
    dropped_frames: session.droppedFrames,
    subscribers: session.subscribers,
    max_bitrate_kbps: session.maxBitrateKbps,
    tracks: {
      video: videoRecord(session.tracks.video),
      audio: audioRecord(session.tracks.audio),
    },
    upstreams: session.upstreams.map(upstreamRecord),
    transcoder_error: session.transcoderError,
    // A node of an older version reports none.
    findings: findingRecords(session.findings ?? []),
  };
}

export function upstreamRecord(upstream: LiveUpstream): z.infer<typeof SessionUpstream> {
  return {
    id: upstream.id,
    label: upstream.label,
    url: upstream.url,
    masked_key: upstream.maskedKey,
    source: upstream.source,
    state: upstream.state,
    since: new Date(upstream.since).toISOString(),
    last_error: upstream.lastError,
    // A node of an older version reports none.
    last_cause: upstream.lastCause ?? null,
    bytes_out: upstream.bytesOut,
    dropped_frames: upstream.droppedFrames,
    reconnects: upstream.reconnects,
    audio_error: upstream.audioError,
  };
}

export function numbersRecord(numbers: Measured): z.infer<typeof Numbers> {
  return {
    bitrate_kbps: numbers.bitrateKbps,
    fps: numbers.fps,
    gop_ms: numbers.gopMs,
    loss_percent: numbers.lossPercent,
    rtt_ms: numbers.rttMs,
    skew_ms: numbers.skewMs,
  };
}

export function sessionWithDiagnostics(
  session: LiveSession,
  players: readonly PlayerStatus[],
  numbers: Measured,
): z.infer<typeof SessionWithDiagnostics> {
  return {
    ...sessionRecord(session),
    numbers: numbersRecord(numbers),
    players: players.map(playerRecord),
    irregularities: session.irregularities.map((of) => ({ ...of, text: irregularityWords(of.code) })),
    diagnostics: inSnakeCase(session.diagnostics ?? null),
  };
}

function playerRecord(player: PlayerStatus): z.infer<typeof Player> {
  return {
    address: player.address,
    since: new Date(player.since).toISOString(),
    bytes_out: player.bytesOut,
    dropped_frames: player.droppedFrames,
  };
}

/** The core's measurements for the API: member names in snake case like all others. */
function inSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inSnakeCase);
  if (typeof value !== "object" || value === null) return value;
  const named = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [named(name), inSnakeCase(of)]));
}
