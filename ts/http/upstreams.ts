// /stream/{id}/upstream: where a stream is always pushed to. A running publish of it is updated immediately.
import type { Kysely } from "kysely";
import { InvalidValue } from "../errors.ts";
import { changed } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import { findStream } from "../organisation/streams.ts";
import { readUpstreamLabel, type StreamUpstreams, UPSTREAM_LABEL_LIMIT } from "../organisation/upstreams.ts";
import type { LiveSessions } from "../publish/live-sessions.ts";
import type { Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";
import { changeOf, Upstream, upstreamOf } from "./records/upstream.ts";
import { requiredText, text } from "./request/schema.ts";

/** Validates a URL before it is saved (W21): null, or the reason for refusing it. `owner`: the organisation whose
 *  look-up limit applies. */
export type CheckUpstreamUrl = (url: string, owner: string) => Promise<null | { readonly reason: string }>;

interface UpstreamDeps extends RouteDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly streamUpstreams: StreamUpstreams;
  readonly checkUpstreamUrl: CheckUpstreamUrl;
  readonly sessions: Pick<LiveSessions, "followStream" | "upstreamsOf">;
}

export const UPSTREAM_ROUTES = {
  "GET /stream/{id}/upstream": {
    about: "stream",
    tag: "Streams",
    summary: "List a stream's upstreams",
    answer: z.array(Upstream),
    errors: [404],
  },
  "POST /stream/{id}/upstream": {
    about: "stream",
    changesUpstreams: true,
    tag: "Streams",
    summary: "Push a stream to an additional upstream",
    description: "From now on, every publish of the stream is pushed there, including a running one.",
    body: z.object({
      url: requiredText().openapi({
        description:
          "Server address, a slash, and the stream key; arguments of the server (`live2?backup=1/key`) belong to the app",
        maxLength: 2_048,
        example: "rtmps://live.example/app/stream-key?token=1",
      }),
      label: text().nullable().optional().openapi({
        description: "Label for the upstream: printable characters",
        maxLength: UPSTREAM_LABEL_LIMIT,
        example: "Main channel",
      }),
    }),
    bodyRequired: true,
    answer: Upstream,
    errors: [404],
  },
  "DELETE /stream/{id}/upstream/{upstream_id}": {
    about: "stream",
    changesUpstreams: true,
    tag: "Streams",
    summary: "Stop pushing a stream to an upstream",
    description: "The push of a running publish ends at once. Returns the removed upstream.",
    answer: Upstream,
    errors: [404],
  },
} satisfies Declarations;

export function upstreamRoutes(deps: UpstreamDeps): Routes["hono"] {
  const { db, clock, streamUpstreams, sessions } = deps;
  const routes = newRoutes(deps, UPSTREAM_ROUTES);

  routes.guarded("GET /stream/{id}/upstream", async (c, caller) => {
    const { id } = await find(caller, c.req.param("id"));
    const upstreams = await streamUpstreams.list(caller.organisation.id, id);
    const live = sessions.upstreamsOf(caller.organisation.id, id);
    return c.json(upstreams.map((upstream) => upstreamOf(upstream, live)));
  });

  routes.guarded("POST /stream/{id}/upstream", async (c, caller, { body: { url, label = null } }) => {
    const { organisation } = caller;
    const { id } = await find(caller, c.req.param("id"));
    const wanted = { url, label: readUpstreamLabel(label) };
    const refusal = await deps.checkUpstreamUrl(wanted.url, organisation.id);
    if (refusal !== null) throw new InvalidValue("url", refusal.reason);
    const now = clock.now();
    const change = changeOf("stream.upstream.add", id);
    const added = await changed(db, caller, now, change, (trx) =>
      streamUpstreams.add(trx, organisation.id, id, wanted, now),
    );
    sessions.followStream(organisation.id, id, { added });
    return c.json(upstreamOf(added, sessions.upstreamsOf(organisation.id, id)));
  });

  routes.guarded("DELETE /stream/{id}/upstream/{upstream_id}", async (c, caller) => {
    const { organisation } = caller;
    const { id } = await find(caller, c.req.param("id"));
    const change = changeOf("stream.upstream.remove", id);
    const live = sessions.upstreamsOf(organisation.id, id);
    const removed = await changed(db, caller, clock.now(), change, (trx) =>
      streamUpstreams.remove(trx, organisation.id, id, c.req.param("upstream_id")),
    );
    sessions.followStream(organisation.id, id, { removed: removed.id });
    return c.json(upstreamOf(removed, live));
  });

  return routes.hono;

  async function find({ organisation, scopeTag }: Caller, id: string) {
    return await findStream(db, organisation.id, id, scopeTag);
  }
}
