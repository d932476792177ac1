// /organisation/events: live changes as server-sent events, one event stream for each page.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { StoreFailed } from "../../errors.ts";
import type { Caller } from "../../organisation/callers.ts";
import { findStream } from "../../organisation/streams.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { credentialsOf, outgoingOf } from "../request/request.ts";
import { text } from "../request/schema.ts";
import { type Events, READERS_LIMIT, READERS_OF_ORGANISATION_LIMIT } from "./events.ts";

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  // Neither cached nor transformed: a proxy that compresses would delay events.
  "cache-control": "no-store, no-transform",
  "x-accel-buffering": "no",
  // The connection of a stream that has ended is not reused.
  connection: "close",
} as const;

const DESCRIPTION = `Server-sent events with JSON data, for a signed-in person or an API key. The stream of events closes within
ten seconds after the session or key ends, or its role changes. A reader that is too slow misses events and then gets the
full state again.

Without \`stream\`: \`sessions\` first, \`{at, counts: {created, live, ended, locked}, sessions: [LiveSession]}\`; then at most
once a second \`changes\`, \`{at, counts?, changed, gone, streams}\`: for each changed session its client_id and the members that
changed (all of them for a new session), the client_ids of sessions that ended, and \`{id, state}\` of streams that changed.

With \`stream\`: \`stream\` first and whenever its state changes, \`{at, state, session}\` with the running publish as GET
/session/{client_id} returns it, or null; every second \`numbers\`, \`{at, client_id, numbers, bytes_in, bytes_out, players, upstreams?, findings?}\`,
with \`upstreams\` when something other than their bytes has changed, and \`findings\` when they have; and \`ended\`, \`{at, client_id, reason}\`.

At most ${READERS_OF_ORGANISATION_LIMIT} can be open per organisation and ${READERS_LIMIT} in all; beyond that: 503 with code 9440 and Retry-After.`;

export const EVENT_ROUTES = {
  "GET /organisation/events": {
    about: "stream",
    long: true,
    tag: "Sessions",
    summary: "Live events of running publishes and streams",
    description: DESCRIPTION,
    query: z.object({
      stream: text().optional().openapi({ description: "Id of a stream: only events of that stream" }),
    }),
    answer: null,
    answerType: "text/event-stream",
    errors: [404],
  },
} satisfies Declarations;

export function eventRoutes(
  deps: RouteDeps & { readonly db: Kysely<Schema>; readonly events: Pick<Events, "open"> },
): Routes["hono"] {
  const { db, authorise, events } = deps;
  const routes = newRoutes(deps, EVENT_ROUTES);
  routes.guarded("GET /organisation/events", async (c, caller, { query: { stream: id } }) => {
    const { organisation, scopeTag } = caller;
    const find = async () => (id === undefined ? null : await findStream(db, organisation.id, id, scopeTag));
    const stream = await find();
    // The response to HEAD has no body.
    if (c.req.method === "HEAD") return c.body(null, 200, HEADERS);
    const body = events.open({
      organisationId: organisation.id,
      scopeTag,
      stream: stream && { id: stream.id, state: stream.state },
      holds: () => holds(c, caller, find),
      cut: () => outgoingOf(c)?.destroy(),
    });
    return c.body(body, 200, HEADERS);
  });
  return routes.hono;

  /** Whether the request would still be answered, and in the same way. */
  async function holds(c: Context, before: Caller, find: () => Promise<unknown>): Promise<boolean> {
    try {
      const now = await authorise(credentialsOf(c), "view");
      await find();
      return now.role === before.role && now.scopeTag === before.scopeTag && now.who.id === before.who.id;
    } catch (error) {
      // While the store does not answer, an open stream continues.
      return error instanceof StoreFailed;
    }
  }
}
