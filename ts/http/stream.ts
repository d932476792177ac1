// /stream (specification §3; M8–M10).
import type { Context } from "hono";
import type { Kysely } from "kysely";
import type { Config } from "../config.ts";
import { InvalidValue, WrongDataType } from "../errors.ts";
import type { Authorise } from "../organisation/callers.ts";
import {
  createStream,
  findStream,
  listStreams,
  QUANTITY_DEFAULT,
  QUANTITY_LIMIT,
  TAG_LENGTH_LIMIT,
  TAGS_LIMIT,
} from "../organisation/streams.ts";
import { baseUrlOf, readJson } from "../request.ts";
import type { Schema, StreamState, StreamTable } from "../store/schema.ts";
import { newRoutes, type Routes, Stream, Tags, z } from "./openapi.ts";

/** States a list can be asked for. */
const LISTED_STATES = ["created", "live", "ended", "locked"] as const satisfies readonly StreamState[];

interface StreamDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
  readonly config: Pick<Config, "http" | "ingest">;
  /** The port RTMP is served on. */
  readonly rtmpPort: number;
}

export function streamRoutes(deps: StreamDeps): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps.authorise);

  routes.guarded(
    "POST /stream",
    {
      tag: "Streams",
      summary: "Create a stream",
      description: "No body is needed. Members that are not known are ignored.",
      body: z.object({ tags: Tags.optional() }),
      answer: Stream,
    },
    async (c, { organisation }) => {
      const tags = tagsOf(await readJson(c));
      return c.json(streamRecord(await createStream(db, organisation, tags, clock.now()), ingestOf(c, deps)));
    },
  );

  routes.guarded(
    "GET /stream",
    {
      tag: "Streams",
      summary: "List streams, newest first",
      query: z.object({
        quantity: z
          .int()
          .min(1)
          .optional()
          .openapi({ description: `Default ${QUANTITY_DEFAULT}, at most ${QUANTITY_LIMIT}` }),
        state: z.enum(LISTED_STATES).optional(),
        "tags[]": z.array(z.string()).optional().openapi({ description: "Only streams with all of these tags" }),
      }),
      answer: z.array(Stream),
    },
    async (c, { organisation }) => {
      const streams = await listStreams(db, organisation.id, filterOf(c));
      return c.json(streams.map((stream) => streamRecord(stream, ingestOf(c, deps))));
    },
  );

  routes.guarded(
    "GET /stream/{id}",
    { tag: "Streams", summary: "One stream", answer: Stream, errors: [404] },
    async (c, { organisation }) =>
      c.json(streamRecord(await findStream(db, organisation.id, c.req.param("id")), ingestOf(c, deps))),
  );

  return routes.hono;
}

function tagsOf({ tags }: Readonly<Record<string, unknown>>): readonly string[] {
  if (tags === undefined || tags === null) return [];
  const isList = Array.isArray(tags) && tags.every((tag) => typeof tag === "string");
  if (!isList) throw new WrongDataType("tags", "array of string");
  if (tags.length > TAGS_LIMIT) throw new InvalidValue("tags", `must be at most ${TAGS_LIMIT}`);
  if (tags.some((tag) => [...tag].length > TAG_LENGTH_LIMIT)) {
    throw new InvalidValue("tags", `must not be longer than ${TAG_LENGTH_LIMIT} characters`);
  }
  if (tags.some((tag) => !tag.isWellFormed())) throw new InvalidValue("tags", "must be well-formed Unicode");
  return tags;
}

function filterOf(c: Context) {
  const quantity = c.req.query("quantity") ?? String(QUANTITY_DEFAULT);
  if (!/^[1-9]\d{0,8}$/.test(quantity)) throw new WrongDataType("quantity", "positive integer");
  const wanted = c.req.query("state");
  const state = wanted === undefined ? null : LISTED_STATES.find((known) => known === wanted);
  if (state === undefined) throw new InvalidValue("state", `must be one of ${LISTED_STATES.join(", ")}`);
  const tags = c.req.queries("tags[]") ?? [];
  if (tags.some((tag) => tag.includes("\0"))) throw new InvalidValue("tags[]", "must not contain NUL");
  return { quantity: Math.min(Number(quantity), QUANTITY_LIMIT), state, tags };
}

interface Ingest {
  /** `rtmp://{ingest_host}:<port>/live`. */
  readonly rtmpUrl: string;
  /** The WHIP endpoint. */
  readonly whipUrl: string;
}

function ingestOf(c: Context, { config, rtmpPort }: StreamDeps): Ingest {
  const base = baseUrlOf(c, config);
  const host = config.ingest.hosts[0] ?? new URL(base).hostname;
  const authority = host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
  return { rtmpUrl: `rtmp://${authority}:${rtmpPort}/live`, whipUrl: `${base}/p/webrtc` };
}

/** The stream as callers see it (M9). */
function streamRecord(stream: StreamTable, { rtmpUrl, whipUrl }: Ingest) {
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
    webrtc: true,
    transcoding: false,
    ingest: { rtmp: { url: rtmpUrl, streamname: name }, whip: { url: `${whipUrl}?${whipQuery}` } },
    playout: { rtmp: [{ url: rtmpUrl, streamname: name, type: "live" }], hls: [], web: [] },
  };
}
