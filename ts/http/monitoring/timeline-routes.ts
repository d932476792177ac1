// /session/{client_id}/timeline: one publish from its request to its end, while it runs and as long as it is kept. For
// a running publish the node that has it answers (cluster/forwarding.ts), for others any node.
import type { Kysely } from "kysely";
import { UnknownRecord } from "../../errors.ts";
import { streamsWithTag } from "../../organisation/reads/stream-list.ts";
import type { Timeline, Timelines } from "../../publish/timeline/timelines.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "../openapi.ts";
import { FindingRecord, findingRecords } from "../records/finding.ts";

const SessionTimeline = z
  .object({
    client_id: z.int().openapi({ description: "clientid of the webhook", example: 100_482 }),
    stream: z.string().openapi({ description: "Id of the stream" }),
    state: z.enum(["asking", "denied", "live", "ended"]),
    protocol: z.enum(["rtmp", "whip"]).nullable(),
    trace_id: z.string().nullable().openapi({
      description: "The same id as in the webhook's traceparent and in the log",
      example: "4bf92f3577b34da6a3ce929d0e0e4736",
    }),
    is_watched: z.boolean().openapi({
      description:
        "false: the publish predates timelines or never carried media, so the timeline has nothing about its media",
    }),
    moments: z.array(
      z.object({
        at: Time,
        offset_ms: z.int().openapi({ description: "Since the first moment", example: 310 }),
        what: z.string().openapi({ description: "A stable code; new codes may be added", example: "connected" }),
        text: z.string().openapi({ example: "ICE and DTLS connected after 310 ms over UDP from 203.0.113.7:50000." }),
        figures: z
          .record(z.string(), z.union([z.string(), z.number(), z.boolean()]).nullable())
          .openapi({ description: "Values used in the text; their names depend on the code" }),
      }),
    ),
    findings: z
      .array(FindingRecord)
      .openapi({ description: "What is wrong with it now, the worst first; empty unless it is running" }),
  })
  .openapi("SessionTimeline");

export const TIMELINE_ROUTES = {
  "GET /session/{client_id}/timeline": {
    about: "client",
    tag: "Sessions",
    summary: "Timeline of a publish, from its request to its end",
    description:
      "For a publish that is running, was denied by the webhook or has ended, as long as `retention.publishes_days` keeps it: " +
      "offer, webhook, ICE and DTLS, first video, missing keyframes, loss, upstreams, end. Its media is sampled five " +
      "times a second at the start and every five seconds afterwards. Requests that were refused before the webhook was " +
      "called have no client id and no timeline: see GET /refusal.",
    answer: SessionTimeline,
    errors: [404],
  },
} satisfies Declarations;

export function timelineRoutes(
  deps: RouteDeps & { readonly db: Kysely<Schema>; readonly timelines: Timelines },
): Routes["hono"] {
  const { db, timelines } = deps;
  const routes = newRoutes(deps, TIMELINE_ROUTES);
  routes.guarded("GET /session/{client_id}/timeline", async (c, { organisation, scopeTag }) => {
    const id = c.req.param("client_id");
    const timeline = /^\d{1,16}$/.test(id) ? await timelines.of(organisation.id, Number(id)) : null;
    if (timeline === null) throw new UnknownRecord("session");
    const { streamId } = timeline;
    if (scopeTag !== null && !(await streamsWithTag(db, organisation.id, scopeTag, [streamId])).has(streamId))
      throw new UnknownRecord("session");
    return c.json(timelineRecord(timeline));
  });
  return routes.hono;
}

function timelineRecord(timeline: Timeline): z.infer<typeof SessionTimeline> {
  return {
    client_id: timeline.clientId,
    stream: timeline.streamId,
    state: timeline.state,
    protocol: timeline.protocol,
    trace_id: timeline.traceId,
    is_watched: timeline.isWatched,
    moments: timeline.moments.map(({ at, offsetMs, what, text, figures }) => ({
      at: new Date(at).toISOString(),
      offset_ms: offsetMs,
      what,
      text,
      figures: { ...figures },
    })),
    findings: findingRecords(timeline.findings),
  };
}
