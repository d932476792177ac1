// /session: running publishes: list, show, kick, and upstreams for as long as they run. Requests about one publish are
// answered by the node that has it (cluster/forwarding.ts).
import type { Kysely } from "kysely";
import { InvalidValue, OperatorsUpstream, UnknownRecord, UnknownUpstream } from "../errors.ts";
import { type Actor, type Change, changed, recordChange } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import { streamsWithTag } from "../organisation/reads/stream-list.ts";
import { BITRATE_LIMIT_KBPS } from "../organisation/settings.ts";
import { findStream, refusalFor, refuseStream } from "../organisation/streams.ts";
import { readUpstreamLabel, UPSTREAM_LABEL_LIMIT } from "../organisation/upstreams.ts";
import { endingBy } from "../publish/ending/ending.ts";
import type { LiveSession, LiveSessions } from "../publish/live-sessions.ts";
import type { Measurements } from "../publish/monitoring/measurements.ts";
import { type History, STEP_MS } from "../publish/monitoring/number-history.ts";
import type { Schema } from "../store/schema.ts";
import type { Others } from "./cluster/others.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";
import { Numbers, Session, SessionWithDiagnostics, sessionRecord, sessionWithDiagnostics } from "./records/session.ts";
import { EndRequest } from "./request/end-request.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { requiredText, text } from "./request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 1_000, most: 1_000 } as const;
const BAD_BITRATE = `must be 0 to ${BITRATE_LIMIT_KBPS}`;
const Page = cursorOf("session", z.tuple([z.int()]));

const { shape: numbers } = Numbers;
const SessionHistory = z
  .object({
    step_ms: z.literal(STEP_MS),
    since: z.int().openapi({ description: "Time of the first point, Unix time in ms", example: 1_767_225_600_000 }),
    points: z.object({
      bitrate_kbps: z.array(numbers.bitrate_kbps),
      fps: z.array(numbers.fps),
      gop_ms: z.array(numbers.gop_ms),
      loss_percent: z.array(numbers.loss_percent),
      rtt_ms: z.array(numbers.rtt_ms),
      skew_ms: z.array(numbers.skew_ms),
    }),
  })
  .openapi("SessionHistory");

export const SESSION_ROUTES = {
  "GET /session": {
    tag: "Sessions",
    summary: "Running publishes, oldest first",
    query: z.object(pageQuery(QUANTITY, Page)),
    answer: z.array(Session),
  },
  "GET /session/{client_id}": {
    about: "client",
    tag: "Sessions",
    summary: "A running publish",
    answer: SessionWithDiagnostics,
    errors: [404],
  },
  "GET /session/{client_id}/history": {
    about: "client",
    tag: "Sessions",
    summary: "Measurements of the last hour of a running publish",
    description: "One point every five seconds; all lists have the same length, with null where a value is not known.",
    answer: SessionHistory,
    errors: [404],
  },
  "POST /session/{client_id}/kick": {
    about: "client",
    ends: true,
    tag: "Sessions",
    summary: "End a publish",
    description:
      "Browsers stay ended; encoders reconnect by themselves, and are let in again after `refuse_s`. Lock the stream to " +
      "keep them out until unlock.",
    body: EndRequest,
    answer: Session,
    errors: [404],
  },
  "PUT /session/{client_id}/bitrate": {
    about: "client",
    tag: "Sessions",
    summary: "Limit the bitrate of a running WHIP publish",
    description:
      "Sent to the broadcaster within a second and in force until the publish ends; 0 removes the limit. The limits of " +
      "the deployment, the plan and the organisation still apply. RTMP cannot carry a limit.",
    body: z.object({
      max_bitrate_kbps: z
        .int()
        .min(0, BAD_BITRATE)
        .max(BITRATE_LIMIT_KBPS, BAD_BITRATE)
        .openapi({ description: "0: no limit for this publish", example: 2_500 }),
    }),
    bodyRequired: true,
    answer: Session,
    errors: [404],
  },
  "POST /session/{client_id}/upstream": {
    about: "client",
    tag: "Sessions",
    summary: "Push a running publish to an additional upstream",
    description:
      "Lasts until the publish ends or the upstream is removed. The URL may contain a stream key, which is not shown again.",
    body: z.object({
      url: requiredText().openapi({ maxLength: 2_048, example: "rtmp://upstream.example/live/key" }),
      label: text()
        .nullable()
        .optional()
        .openapi({ description: "Label for the upstream", maxLength: UPSTREAM_LABEL_LIMIT, example: "Backup" }),
    }),
    bodyRequired: true,
    answer: Session,
    errors: [404],
  },
  "DELETE /session/{client_id}/upstream/{id}": {
    about: "client",
    tag: "Sessions",
    summary: "Stop pushing to an upstream",
    description: "Upstreams with source `deployment` belong to the operator and cannot be removed.",
    answer: Session,
    errors: [404],
  },
} satisfies Declarations;

export function sessionRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly sessions: LiveSessions;
    readonly measurements: Pick<Measurements, "numbersOf" | "historyOf">;
    /** Publishes running on other nodes; null where there are none. */
    readonly others?: Pick<Others, "sessions"> | null;
  },
): Routes["hono"] {
  const { db, clock, sessions, measurements } = deps;
  const routes = newRoutes(deps, SESSION_ROUTES);

  routes.guarded("GET /session", async (c, caller, { query: { quantity, cursor } }) => {
    // The sessions do not know the tags of their streams: any number may be left out below.
    const most = caller.scopeTag === null ? quantity + 1 : Number.MAX_SAFE_INTEGER;
    const page = { after: cursor?.[0] ?? 0, quantity: most, isMeant: () => true };
    const positionOf = ({ clientId }: LiveSession): [number] => [clientId];
    const here = sessions.list(caller.organisation.id, page);
    const all = [...here, ...((await deps.others?.sessions(caller.organisation.id, page)) ?? [])];
    const isInScope = await scopeOf(
      caller,
      all.map(({ streamId }) => streamId),
    );
    const seen = all.filter(({ streamId }) => isInScope(streamId));
    const found = seen.sort((a, b) => a.clientId - b.clientId).slice(0, quantity + 1);
    return c.json(pageOf(c, found, { quantity, cursor: Page, positionOf }).map(sessionRecord));
  });

  routes.guarded("GET /session/{client_id}", async (c, caller) => {
    const session = await find(caller, c.req.param("client_id"));
    const numbers = measurements.numbersOf(session.clientId);
    return c.json(sessionWithDiagnostics(session, sessions.players(session), numbers));
  });

  routes.guarded("GET /session/{client_id}/history", async (c, caller) => {
    const session = await find(caller, c.req.param("client_id"));
    const { since, points } = measurements.historyOf(session.clientId);
    return c.json({ step_ms: STEP_MS, since: since ?? clock.now(), points: pointsRecord(points) });
  });

  routes.guarded("POST /session/{client_id}/kick", async (c, caller, { body }) => {
    const away = c.get("away");
    if (away !== undefined && away.organisationId === caller.organisation.id) {
      if (!(await scopeOf(caller, [away.streamId]))(away.streamId)) throw new UnknownRecord("session");
      await recordKick(deps, caller, { ...away, detail: { client_id: away.clientId } }, body);
      c.set("ending", endingBy(caller.who, body.reason));
      return c.json({}); // replaced by the error for the node that does not answer
    }
    const session = await find(caller, c.req.param("client_id"));
    await recordKick(deps, caller, { ...session, detail: detailOf(session) }, body);
    const ending = endingBy(caller.who, body.reason);
    c.set("ending", ending);
    if (!sessions.kick(session.organisationId, { clientId: session.clientId }, ending)) {
      throw new UnknownRecord("session");
    }
    return c.json(sessionRecord(session));
  });

  routes.guarded("PUT /session/{client_id}/bitrate", async (c, caller, { body: { max_bitrate_kbps: kbps } }) => {
    const session = await find(caller, c.req.param("client_id"));
    if (session.protocol === "rtmp")
      throw new InvalidValue("client_id", "is an RTMP publish, and RTMP cannot carry a bitrate limit");
    const detail = { ...detailOf(session), max_bitrate_kbps: kbps };
    await record(caller, { action: "session.bitrate", subject: session.streamId, detail });
    const outcome = sessions.limitBitrate(session.organisationId, session.clientId, kbps);
    if (outcome !== "limited") throw new UnknownRecord("session");
    return c.json(sessionRecord(sessions.show(session.organisationId, session.clientId) ?? session));
  });

  routes.guarded("POST /session/{client_id}/upstream", async (c, caller, { body: { url, label = null } }) => {
    const session = await find(caller, c.req.param("client_id"));
    const wanted = { url, label: readUpstreamLabel(label) };
    const change = { action: "session.upstream.add", subject: session.streamId, detail: detailOf(session) };
    const recorded = () => record(caller, change);
    if (!(await sessions.addUpstream(session.organisationId, session.clientId, wanted, recorded))) {
      throw new UnknownRecord("session");
    }
    return c.json(sessionRecord(sessions.show(session.organisationId, session.clientId) ?? session));
  });

  routes.guarded("DELETE /session/{client_id}/upstream/{id}", async (c, caller) => {
    const session = await find(caller, c.req.param("client_id"));
    const { organisationId, clientId } = session;
    const upstream = session.upstreams.find(({ id }) => id === c.req.param("id"));
    if (upstream === undefined) throw new UnknownUpstream();
    if (upstream.source === "deployment") throw new OperatorsUpstream();
    await record(caller, { action: "session.upstream.remove", subject: session.streamId, detail: detailOf(session) });
    // It may have been removed meanwhile.
    if (sessions.removeUpstream(organisationId, clientId, upstream.id) !== "removed") throw new UnknownUpstream();
    return c.json(sessionRecord(sessions.show(session.organisationId, session.clientId) ?? session));
  });

  return routes.hono;

  async function find(caller: Caller, id: string): Promise<LiveSession> {
    const session = /^\d{1,16}$/.test(id) ? sessions.show(caller.organisation.id, Number(id)) : undefined;
    if (session === undefined || !(await scopeOf(caller, [session.streamId]))(session.streamId))
      throw new UnknownRecord("session");
    return session;
  }

  async function scopeOf(
    { organisation, scopeTag }: Caller,
    ids: readonly string[],
  ): Promise<(streamId: string) => boolean> {
    if (scopeTag === null) return () => true;
    const streams = await streamsWithTag(db, organisation.id, scopeTag, ids);
    return (streamId) => streams.has(streamId);
  }

  /** Called before the change takes effect: if the store fails, nothing has happened, and a retry does it once. */
  async function record(actor: Actor, change: Change): Promise<void> {
    await recordChange(db, actor, clock.now(), change);
  }
}

function pointsRecord({ bitrateKbps, fps, gopMs, lossPercent, rttMs, skewMs }: History["points"]) {
  return {
    bitrate_kbps: bitrateKbps,
    fps,
    gop_ms: gopMs,
    loss_percent: lossPercent,
    rtt_ms: rttMs,
    skew_ms: skewMs,
  };
}

/** Its stream is refused from the same moment on, so that an encoder that reconnects at once is. */
async function recordKick(
  { db, clock }: { readonly db: Kysely<Schema>; readonly clock: { now(): number } },
  caller: Caller & Actor,
  of: { readonly organisationId: string; readonly streamId: string; readonly detail: object },
  { reason, refuse_s }: z.output<typeof EndRequest>,
): Promise<void> {
  const now = clock.now();
  const said = { ...(reason && { reason }), ...(refuse_s && { refuse_s }) };
  const change = { action: "session.kick", subject: of.streamId, detail: { ...of.detail, ...said } };
  await changed(db, caller, now, change, async (trx) => {
    if (!refuse_s) return;
    const stream = await findStream(trx, of.organisationId, of.streamId);
    await refuseStream(trx, stream, refusalFor(refuse_s, endingBy(caller.who, reason).reason, now), now);
  });
}

const detailOf = ({ clientId, name }: LiveSession) => ({ client_id: clientId, name });
