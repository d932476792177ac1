// /session: publishes that run now, in this process: list, show, kick, upstreams for as long as they run.
import type { Kysely } from "kysely";
import { InvalidValue, OperatorsUpstream, UnknownRecord, UnknownUpstream } from "../errors.ts";
import { UPSTREAM_SOURCES, UPSTREAM_STATES } from "../media/codes.ts";
import { type PlayerStatus, PROTOCOLS } from "../media.ts";
import { type Actor, type Change, recordChange } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import { BITRATE_LIMIT_KBPS } from "../organisation/settings.ts";
import { streamsWithTag } from "../organisation/streams.ts";
import { readUpstreamLabel, UPSTREAM_LABEL_LIMIT } from "../organisation/upstreams.ts";
import type { LiveSession, LiveSessions } from "../publish/live-sessions.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { requiredText, text, wholeNumber } from "./request/schema.ts";

/** Of one page. */
const QUANTITY = { standard: 1_000, most: 1_000 } as const;
/** Longest reason for the broadcaster, characters, and what it is without one. */
const REASON_LIMIT = 200;
const BAD_REASON = `must be at most ${REASON_LIMIT} printable ASCII characters`;
const REASON = "Publish was ended by the operator";
const BAD_BITRATE = `must be 0 to ${BITRATE_LIMIT_KBPS}`;
const Page = cursorOf("session", z.tuple([z.int()]));

const Upstream = z
  .object({
    id: z.string().openapi({ description: "Of a stream's upstream the same as there" }),
    label: z.string().nullable().openapi({ description: "As it was given; null for none" }),
    url: z.string().openapi({ description: "Without credentials, stream key and arguments" }),
    masked_key: z.string().openapi({ description: "The beginning of its stream key", example: "ab…" }),
    source: z.enum(UPSTREAM_SOURCES),
    state: z.enum(UPSTREAM_STATES),
    since: Time,
    last_error: z.string().nullable().openapi({ description: "Why it last stopped; null when it never did" }),
    bytes_out: z.int(),
    dropped_frames: z.int(),
    reconnects: z.int(),
    audio_error: z
      .string()
      .nullable()
      .openapi({ description: "Why it gets no audio unless it takes Opus; null when all is well" }),
  })
  .openapi("SessionUpstream");
const sessionShape = {
  client_id: z.int().openapi({ description: "clientid of the webhook" }),
  stream: z.uuid(),
  streamname: z.string(),
  protocol: z.enum(PROTOCOLS),
  address: z.string(),
  accepted_at: Time,
  timestamp_ms: z.number(),
  bytes_in: z.int(),
  bytes_out: z.int(),
  dropped_frames: z.int(),
  subscribers: z.int(),
  max_bitrate_kbps: z
    .int()
    .openapi({ description: "What the sender was told to stay below; 0: no limit, or RTMP, which has no word for it" }),
  tracks: z.object({
    video: z.object({ codec: z.string(), width: z.int().nullable(), height: z.int().nullable() }).nullable(),
    audio: z.object({ codec: z.string(), sample_rate: z.int().nullable(), channels: z.int().nullable() }).nullable(),
  }),
  upstreams: z.array(Upstream),
  transcoder_error: z.string().nullable().openapi({
    description:
      "Why the audio is not transcoded to AAC although a player or an upstream needs that; null when all is well",
  }),
};
const Player = z
  .object({ address: z.string(), since: Time, bytes_out: z.int(), dropped_frames: z.int() })
  .openapi("SessionPlayer");
const Session = z.object(sessionShape).openapi("Session");
const SessionWithDiagnostics = z
  .object({
    ...sessionShape,
    players: z.array(Player).openapi({ description: "Who plays it, the oldest first; the first thousand of them" }),
    diagnostics: z.unknown().openapi({ description: "What the protocol tells of its transport; null when nothing" }),
  })
  .openapi("SessionWithDiagnostics");

export function sessionRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly sessions: LiveSessions;
  },
): Routes["hono"] {
  const { db, clock, sessions } = deps;
  const routes = newRoutes(deps);

  routes.guarded(
    "GET /session",
    {
      tag: "Sessions",
      summary: "Publishes that run now, oldest first",
      query: z.object({
        ...pageQuery(QUANTITY, Page),
        after: wholeNumber({ type: "client_id" })
          .optional()
          .openapi({ deprecated: true, description: "The client_id of the last one of the page before" }),
      }),
      answer: z.array(Session),
    },
    async (c, caller, { query: { quantity, cursor, after = 0 } }) => {
      const page = { after: cursor?.[0] ?? after, quantity: quantity + 1, isMeant: await scopeOf(caller) };
      const positionOf = ({ clientId }: LiveSession): [number] => [clientId];
      const found = sessions.list(caller.organisation.id, page);
      return c.json(pageOf(c, found, { quantity, cursor: Page, positionOf }).map(sessionRecord));
    },
  );

  routes.guarded(
    "GET /session/{client_id}",
    { tag: "Sessions", summary: "One running publish", answer: SessionWithDiagnostics, errors: [404] },
    async (c, caller) => {
      const session = await find(caller, c.req.param("client_id"));
      const diagnostics = inSnakeCase(session.diagnostics ?? null);
      return c.json({ ...sessionRecord(session), players: sessions.players(session).map(playerRecord), diagnostics });
    },
  );

  routes.guarded(
    "POST /session/{client_id}/kick",
    {
      tag: "Sessions",
      summary: "End a publish",
      description: "The broadcaster may come back at once; to keep it out, lock the stream.",
      body: z.object({
        reason: text()
          .refine((given) => /^[\x20-\x7e]*$/.test(given) && given.length <= REASON_LIMIT, BAD_REASON)
          .nullable()
          .optional()
          .openapi({ description: "What the broadcaster is told", maxLength: REASON_LIMIT, example: "Off air" }),
      }),
      answer: Session,
      errors: [404],
    },
    async (c, caller, { body }) => {
      const session = await find(caller, c.req.param("client_id"));
      const reason = body.reason ?? REASON;
      await record(caller, { action: "session.kick", subject: session.streamId, detail: detailOf(session) });
      if (!sessions.kick(session.organisationId, session.clientId, reason)) throw new UnknownRecord("session");
      return c.json(sessionRecord(session));
    },
  );

  routes.guarded(
    "PUT /session/{client_id}/bitrate",
    {
      tag: "Sessions",
      summary: "Limit the bitrate of a running WHIP publish",
      description:
        "The sender is told to stay below it within a second, until the publish ends; 0 takes the limit away. What the " +
        "deployment, the plan and the organisation allow holds all the same. An RTMP encoder cannot be told.",
      body: z.object({
        max_bitrate_kbps: z
          .int()
          .min(0, BAD_BITRATE)
          .max(BITRATE_LIMIT_KBPS, BAD_BITRATE)
          .openapi({ description: "0: no limit of its own", example: 2_500 }),
      }),
      bodyRequired: true,
      answer: Session,
      errors: [404],
    },
    async (c, caller, { body: { max_bitrate_kbps: kbps } }) => {
      const session = await find(caller, c.req.param("client_id"));
      const outcome = sessions.limitBitrate(session.organisationId, session.clientId, kbps);
      if (outcome === "not_running") throw new UnknownRecord("session");
      if (outcome === "cannot_be_told") throw new InvalidValue("client_id", "came by RTMP, which has no word for it");
      const detail = { ...detailOf(session), max_bitrate_kbps: kbps };
      await record(caller, { action: "session.bitrate", subject: session.streamId, detail });
      return c.json(sessionRecord(sessions.show(session.organisationId, session.clientId) ?? session));
    },
  );

  routes.guarded(
    "POST /session/{client_id}/upstream",
    {
      tag: "Sessions",
      summary: "Push to one more upstream",
      description:
        "Until the publish ends or the upstream is removed. The URL may hold a stream key; it is not shown again.",
      body: z.object({
        url: requiredText().openapi({ maxLength: 2_048, example: "rtmp://upstream.example/live/key" }),
        label: text()
          .nullable()
          .optional()
          .openapi({ description: "What to call it", maxLength: UPSTREAM_LABEL_LIMIT, example: "Backup" }),
      }),
      bodyRequired: true,
      answer: Session,
      errors: [404],
    },
    async (c, caller, { body: { url, label = null } }) => {
      const session = await find(caller, c.req.param("client_id"));
      const wanted = { url, label: readUpstreamLabel(label) };
      if (!(await sessions.addUpstream(session.organisationId, session.clientId, wanted))) {
        throw new UnknownRecord("session");
      }
      await record(caller, { action: "session.upstream.add", subject: session.streamId, detail: detailOf(session) });
      return c.json(sessionRecord(sessions.show(session.organisationId, session.clientId) ?? session));
    },
  );

  routes.guarded(
    "DELETE /session/{client_id}/upstream/{id}",
    {
      tag: "Sessions",
      summary: "Push to an upstream no longer",
      description: "Those with source deployment are the operator's and stay.",
      answer: Session,
      errors: [404],
    },
    async (c, caller) => {
      const session = await find(caller, c.req.param("client_id"));
      const { organisationId, clientId } = session;
      const outcome = sessions.removeUpstream(organisationId, clientId, c.req.param("id"));
      if (outcome === "operators") throw new OperatorsUpstream();
      if (outcome === "unknown") throw new UnknownUpstream();
      await record(caller, { action: "session.upstream.remove", subject: session.streamId, detail: detailOf(session) });
      return c.json(sessionRecord(sessions.show(session.organisationId, session.clientId) ?? session));
    },
  );

  return routes.hono;

  async function find(caller: Caller, id: string): Promise<LiveSession> {
    const session = /^\d{1,16}$/.test(id) ? sessions.show(caller.organisation.id, Number(id)) : undefined;
    if (session === undefined || !(await scopeOf(caller))(session.streamId)) throw new UnknownRecord("session");
    return session;
  }

  async function scopeOf({ organisation, scopeTag }: Caller): Promise<(streamId: string) => boolean> {
    if (scopeTag === null) return () => true;
    const streams = await streamsWithTag(db, organisation.id, scopeTag);
    return (streamId) => streams.has(streamId);
  }

  async function record(actor: Actor, change: Change): Promise<void> {
    await recordChange(db, actor, clock.now(), change);
  }
}

const detailOf = ({ clientId, name }: LiveSession) => ({ client_id: clientId, name });

function sessionRecord(session: LiveSession): z.infer<typeof Session> {
  const { video, audio } = session.tracks;
  return {
    client_id: session.clientId,
    stream: session.streamId,
    streamname: session.name,
    protocol: session.protocol,
    address: session.address,
    accepted_at: new Date(session.acceptedAt).toISOString(),
    timestamp_ms: session.timestampMs,
    bytes_in: session.bytesIn,
    bytes_out: session.bytesOut,
    dropped_frames: session.droppedFrames,
    subscribers: session.subscribers,
    max_bitrate_kbps: session.maxBitrateKbps,
    tracks: {
      video: video && { codec: video.codec, width: video.width, height: video.height },
      audio: audio && { codec: audio.codec, sample_rate: audio.sampleRate, channels: audio.channels },
    },
    upstreams: session.upstreams.map((upstream) => ({
      id: upstream.id,
      label: upstream.label,
      url: upstream.url,
      masked_key: upstream.maskedKey,
      source: upstream.source,
      state: upstream.state,
      since: new Date(upstream.since).toISOString(),
      last_error: upstream.lastError,
      bytes_out: upstream.bytesOut,
      dropped_frames: upstream.droppedFrames,
      reconnects: upstream.reconnects,
      audio_error: upstream.audioError,
    })),
    transcoder_error: session.transcoderError,
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

/** The core's measurements as callers see them: members named like every other of this API. */
function inSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inSnakeCase);
  if (typeof value !== "object" || value === null) return value;
  const named = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [named(name), inSnakeCase(of)]));
}
