// /stream/{id}/publish: the publishes of a stream, newest first, and why each ended or was denied.
import type { Kysely } from "kysely";
import { findStream } from "../organisation/streams.ts";
import { END_CODES, type Ending } from "../publish/ending/ending.ts";
import { listPublishes, type PastPublish, type PublishPosition } from "../publish/monitoring/publish-list.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { AudioTrack, audioRecord, VideoTrack, videoRecord } from "./records/tracks.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { timeFilters } from "./request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 50, most: 500 } as const;
const Page = cursorOf("publish", z.tuple([z.int(), z.int()]));

const Publish = z
  .object({
    client_id: z.int().openapi({ description: "clientid of the webhook" }),
    state: z
      .enum(["asking", "denied", "live", "ended"])
      .openapi({ description: "asking: waiting for the webhook's answer" }),
    protocol: z.enum(["rtmp", "whip"]).nullable(),
    address: z
      .string()
      .nullable()
      .openapi({ description: "Address of the broadcaster; for denied publishes kept for some days only" }),
    asked_at: Time,
    accepted_at: Time.nullable(),
    ended_at: Time.nullable(),
    continues: z.int().nullable().openapi({
      description: "client_id of the lost publish whose upstreams and players this one took over; null for none",
    }),
    end_reason: z.string().nullable().openapi({ example: "broadcaster_left" }),
    end_words: z
      .string()
      .nullable()
      .openapi({ description: "end_reason in words", example: "The connection to the broadcaster was lost." }),
    end: z
      .object({
        code: z.string().openapi({ example: "ended_by_person" }),
        by: z.string().openapi({ description: "What the broadcaster is told", example: "person" }),
        who: z
          .object({ kind: z.enum(["key", "user", "operator"]), id: z.string().nullable() })
          .nullable()
          .openapi({ description: "The person or key, as in /organisation/audit" }),
        reason: z.string().openapi({ description: "The reason sent to the broadcaster", example: "Off air" }),
      })
      .nullable()
      .openapi({ description: "Who asked for the end; null for nobody" }),
    denial: z
      .object({
        cause: z.string().openapi({ example: "rejected_by_customer" }),
        reason: z.string().openapi({ description: "The reason sent to the broadcaster", example: "Unknown passcode" }),
      })
      .nullable(),
    bytes_in: z.int(),
    bytes_out: z.int(),
    video: VideoTrack.nullable(),
    audio: AudioTrack.nullable(),
    dropped_frames: z.int().nullable().openapi({ description: "Frames dropped on the way to players and upstreams" }),
  })
  .openapi("Publish");

export function publishRoutes(deps: RouteDeps & { readonly db: Kysely<Schema> }): Routes["hono"] {
  const routes = newRoutes(deps);
  routes.guarded(
    "GET /stream/{id}/publish",
    {
      tag: "Streams",
      summary: "Publishes of a stream, newest first",
      description:
        "Publishes that the webhook was asked about, or, without a webhook, those that went live; as long as " +
        "`retention.publishes_days` keeps them. Values not known for older publishes are null.",
      query: z.object({ ...pageQuery(QUANTITY, Page), ...timeFilters() }),
      answer: z.array(Publish),
      errors: [404],
    },
    async (c, { organisation, scopeTag }, { query: { quantity, cursor, from = null, to = null } }) => {
      const stream = await findStream(deps.db, organisation.id, c.req.param("id"), scopeTag);
      const page = { before: cursor ?? null, quantity: quantity + 1, from, to };
      const found = await listPublishes(deps.db, stream.id, page);
      const positionOf = ({ askedAt, clientId }: PastPublish): PublishPosition => [askedAt, clientId];
      return c.json(pageOf(c, found, { quantity, cursor: Page, positionOf }).map(publishRecord));
    },
  );
  return routes.hono;
}

function publishRecord(publish: PastPublish): z.infer<typeof Publish> {
  return {
    client_id: publish.clientId,
    state: publish.state,
    protocol: publish.protocol,
    address: publish.address,
    asked_at: timeText(publish.askedAt),
    accepted_at: timeText(publish.acceptedAt),
    ended_at: timeText(publish.endedAt),
    continues: publish.continues,
    end_reason: publish.endReason,
    end_words: publish.endWords,
    end: publish.ending && endRecord(publish.ending),
    denial: publish.denial,
    bytes_in: publish.bytesIn,
    bytes_out: publish.bytesOut,
    video: videoRecord(publish.video),
    audio: audioRecord(publish.audio),
    dropped_frames: publish.droppedFrames,
  };
}

const endRecord = ({ code, who, reason }: Ending) => ({ code, by: END_CODES[code].by, who, reason });

function timeText<Ms extends number | null>(ms: Ms): Ms extends number ? string : string | null;
function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
