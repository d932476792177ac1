// /stream (docs/management.md; M8–M10).
import type { Kysely } from "kysely";
import type { Config } from "../config.ts";
import { InvalidValue } from "../errors.ts";
import { changed, recordChange } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import {
  listStreams,
  listStreamsLiveFirst,
  QUANTITY_DEFAULT,
  QUANTITY_LIMIT,
  type StreamPosition,
  WINDOW,
} from "../organisation/reads/stream-list.ts";
import { HOLD_LIMIT_S } from "../organisation/settings.ts";
import {
  changeOfTags,
  findStream,
  setHold,
  setTags,
  shortList,
  TAG_LENGTH_LIMIT,
  TAGS_LIMIT,
} from "../organisation/streams.ts";
import { createTitledStream, givenTexts, readExternalId } from "../organisation/titles/stream-titles.ts";
import type { LiveSessions } from "../publish/live-sessions.ts";
import type { Schema, StreamState, StreamTable } from "../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";
import { Stream } from "./records/stream.ts";
import { cursorOf, pageOf, pageQuery, UNKNOWN_CURSOR } from "./request/page.ts";
import { GivenPublishKey } from "./request/publish-key.ts";
import { text } from "./request/schema.ts";
import { type RecordDeps, recorder, recordOf } from "./request/stream-record.ts";
import { GivenExternalId, GivenTitle, textsOf } from "./request/stream-texts.ts";

/** States by which a list can be filtered. */
const LISTED_STATES = ["created", "live", "ended", "locked"] as const satisfies readonly StreamState[];

/** The position after a stream; in the order with live streams first it includes whether the stream was live. */
const Page = cursorOf("stream", z.union([z.tuple([z.int(), text()]), z.tuple([z.int(), text(), z.boolean()])]));
/** Longest search text, characters. */
const SEARCH_LIMIT = 100;
/** Tags as given in a request; null: none. */
const GivenTags = z
  .array(text({ most: TAG_LENGTH_LIMIT }))
  .max(TAGS_LIMIT, `must be at most ${TAGS_LIMIT}`)
  .nullable()
  .transform((tags): readonly string[] => tags ?? [])
  .openapi({ example: ["studio-1"] });

interface StreamDeps extends RouteDeps, RecordDeps {
  readonly reads: Kysely<Schema>;
  readonly config: Pick<Config, "http" | "ingest" | "nameRandom">;
  readonly sessions: Pick<LiveSessions, "switchTarget" | "switchTo">;
}

export const STREAM_ROUTES = {
  "POST /stream": {
    tag: "Streams",
    summary: "Create a stream",
    description:
      "No body is needed. Unknown members are ignored, and named in `warnings`. Without a webhook, and without require_token in " +
      "/organisation/settings, anyone who knows the name can publish; by default, anyone who knows it can play.",
    body: z.object({
      tags: GivenTags.optional(),
      title: GivenTitle.optional(),
      external_id: GivenExternalId.optional(),
      publish_key: GivenPublishKey.optional(),
    }),
    answer: Stream,
  },
  "GET /stream": {
    tag: "Streams",
    summary: "List streams, newest first",
    description:
      "With `order=live`, live streams come before all others; a stream that goes live or ends between two pages may then " +
      "appear on both or on neither.\n\nOf streams with `tags[]` or `search` one request looks at " +
      `${WINDOW} at most: a page may then be shorter than \`quantity\` and still have a next one, as x-next-cursor says. ` +
      "`search` finds every stream by any part of its name after the hyphen, of its title and of its external id, by the " +
      `beginning of its name or of a tag, or by the beginning of a word in a tag; text within a word of a tag is found in the newest ${WINDOW} streams.`,
    query: z.object({
      ...pageQuery({ standard: QUANTITY_DEFAULT, most: QUANTITY_LIMIT }, Page),
      state: z.enum(LISTED_STATES).optional().openapi({ description: "Only streams in this state", example: "live" }),
      "tags[]": z
        .array(text())
        .optional()
        .openapi({ description: "Only streams with all of these tags", example: ["studio-1"] }),
      search: text({ most: SEARCH_LIMIT }).optional().openapi({
        description:
          "Only streams with this text in their name, title, external id or a tag, ignoring case (see above)",
        example: "studio",
      }),
      external_id: text().optional().openapi({
        description: "Only the stream with exactly this external id",
        example: "event-4711",
      }),
      order: z
        .enum(["newest", "live"])
        .default("newest")
        .openapi({ description: "Which streams come first", example: "live" }),
    }),
    answer: z.array(Stream),
  },
  "GET /stream/{id}": { tag: "Streams", summary: "One stream", answer: Stream, errors: [404] },
  "PUT /stream/{id}/tag": {
    tag: "Streams",
    summary: "Replace the tags of a stream",
    body: z.object({ tags: GivenTags }),
    bodyRequired: true,
    answer: Stream,
    errors: [404],
  },
  "PUT /stream/{id}/hold": {
    tag: "Streams",
    summary: "Set how long a lost publish of a stream is held",
    description:
      "How many seconds upstreams and players of a publish that was lost without being ended wait for its successor, " +
      "from the next publish on. 0: not at all; null: the value of hold_s in /organisation/settings, or of publish.hold_s.",
    body: z.object({ hold_s: z.int().min(0).max(HOLD_LIMIT_S).nullable().openapi({ example: 20 }) }),
    bodyRequired: true,
    answer: Stream,
    errors: [404],
  },
  "PUT /stream/{id}/switch": {
    about: "stream",
    tag: "Streams",
    summary: "Put the other publish of a stream on air",
    description:
      "For a stream with a publish and a backup; connections to upstreams and players are kept. The other publish " +
      "is then on standby. A publish that is already on air is not changed.",
    body: z.object({
      to: z.int().nullable().optional().openapi({
        description: "client_id of the publish to put on air; default: the one on standby",
        example: 100_483,
      }),
    }),
    answer: z
      .object({
        client_id: z.int(),
        on_air: z.boolean().openapi({ description: "false: it takes over at its next keyframe" }),
      })
      .openapi("Switched"),
    errors: [404, 409],
  },
} satisfies Declarations;

export function streamRoutes(deps: StreamDeps): Routes["hono"] {
  const { db, reads, clock, sessions } = deps;
  const routes = newRoutes(deps, STREAM_ROUTES);

  routes.guarded("POST /stream", async (c, caller, { body }) => {
    const tags = withScope(body.tags ?? [], caller);
    const { publish_key = null } = body;
    const texts = textsOf(body);
    const now = clock.now();
    const change = (made: StreamTable) => ({
      action: "stream.create",
      subject: made.id,
      detail: {
        name: made.name,
        tags: shortList(tags),
        ...givenTexts(made),
        ...(publish_key !== null && { publish_key }),
      },
    });
    const { organisation, scopeTag: seenBy } = caller;
    const given = { tags, publishKey: publish_key, ...texts, seenBy, nameRandom: deps.config.nameRandom, now };
    const stream = await changed(db, caller, now, change, (trx) => createTitledStream(trx, organisation, given));
    return c.json(await recordOf(c, caller, stream, deps));
  });

  routes.guarded(
    "GET /stream",
    async (c, caller, { query: { quantity, cursor = null, state = null, search, order, external_id, ...query } }) => {
      const { organisation, scopeTag } = caller;
      const externalId = external_id === undefined ? null : readExternalId(external_id);
      // Else a caller who has no id to ask for would take the first stream for the one that was meant.
      if (external_id !== undefined && externalId === null) throw new InvalidValue("external_id", "must not be empty");
      const tags = [...(query["tags[]"] ?? []), ...(scopeTag === null ? [] : [scopeTag])];
      const filter = { quantity: quantity + 1, state, tags, search: search || null, externalId };
      const [createdAt, id, live] = cursor ?? [];
      // A cursor of one order is invalid in the other.
      if (cursor !== null && (live !== undefined) !== (order === "live"))
        throw new InvalidValue("cursor", UNKNOWN_CURSOR);
      const position = createdAt === undefined || id === undefined ? null : { createdAt, id };
      const found =
        order === "newest"
          ? await listStreams(reads, organisation, { ...filter, behind: position })
          : await listStreamsLiveFirst(reads, organisation, {
              ...filter,
              behind: position && { ...position, live: live === true },
            });
      const cursorAt = ({ createdAt, id, live }: StreamPosition): [number, string] | [number, string, boolean] =>
        order === "newest" ? [createdAt, id] : [createdAt, id, live];
      const positionOf = ({ created_at, id, state }: StreamTable) =>
        cursorAt({ createdAt: Number(created_at), id, live: state === "live" });
      const page = { quantity, cursor: Page, positionOf };
      const streams = pageOf(c, found.streams, page, found.rest && cursorAt(found.rest));
      return c.json(streams.map(await recorder(c, caller, { ...deps, db: reads })));
    },
  );

  routes.guarded("GET /stream/{id}", async (c, caller) =>
    c.json(await recordOf(c, caller, await find(caller, c.req.param("id")), deps)),
  );

  routes.guarded("PUT /stream/{id}/tag", async (c, caller, { body }) => {
    const stream = await find(caller, c.req.param("id"));
    const tags = withScope(body.tags, caller);
    const now = clock.now();
    const change = { action: "stream.tag", subject: stream.id, detail: changeOfTags(stream, tags) };
    const tagged = await changed(db, caller, now, change, (trx) => setTags(trx, stream, tags, now));
    return c.json(await recordOf(c, caller, tagged, deps));
  });

  routes.guarded("PUT /stream/{id}/hold", async (c, caller, { body: { hold_s } }) => {
    const stream = await find(caller, c.req.param("id"));
    const now = clock.now();
    const change = { action: "stream.hold", subject: stream.id, detail: { hold_s } };
    const held = await changed(db, caller, now, change, (trx) => setHold(trx, stream, hold_s, now));
    return c.json(await recordOf(c, caller, held, deps));
  });

  routes.guarded("PUT /stream/{id}/switch", async (c, caller, { body: { to = null } }) => {
    const stream = await find(caller, c.req.param("id"));
    const clientId = sessions.switchTarget(caller.organisation.id, stream.id, to);
    const change = { action: "stream.switch", subject: stream.id, detail: { to: clientId } };
    await recordChange(db, caller, clock.now(), change);
    const { onAir } = await sessions.switchTo(caller.organisation.id, stream.id, clientId);
    return c.json({ client_id: clientId, on_air: onAir });
  });

  return routes.hono;

  async function find({ organisation, scopeTag }: Caller, id: string): Promise<StreamTable> {
    return await findStream(db, organisation.id, id, scopeTag);
  }
}

/** A key limited to a tag creates streams with it and cannot remove it. */
function withScope(tags: readonly string[], { scopeTag }: Caller): readonly string[] {
  if (scopeTag === null || tags.includes(scopeTag)) return tags;
  if (tags.length >= TAGS_LIMIT) throw new InvalidValue("tags", `must be at most ${TAGS_LIMIT}`);
  return [...tags, scopeTag];
}
