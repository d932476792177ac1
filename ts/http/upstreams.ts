// /stream/{id}/upstream: where a stream is always pushed to. A running publish of it follows at once.
import type { Kysely } from "kysely";
import { InvalidValue, ParameterRequired, WrongDataType } from "../errors.ts";
import { changed } from "../organisation/audit.ts";
import type { Authorise, Caller } from "../organisation/callers.ts";
import { findStream } from "../organisation/streams.ts";
import type { StreamUpstream, StreamUpstreams } from "../organisation/upstreams.ts";
import type { LiveSessions } from "../publish/sessions.ts";
import { shownUpstream } from "../publish/upstream-url.ts";
import { readJson } from "../request.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type Routes, Time, z } from "./openapi.ts";

/** Judges a URL at save (W21): null, or why not. `owner`: the organisation that asks. */
export type CheckUpstreamUrl = (url: string, owner: string) => Promise<null | { readonly reason: string }>;

interface UpstreamDeps {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
  readonly streamUpstreams: StreamUpstreams;
  readonly checkUpstreamUrl: CheckUpstreamUrl;
  readonly sessions: Pick<LiveSessions, "followStream">;
}

const Upstream = z
  .object({
    id: z.uuid(),
    url: z.string().openapi({
      description: "Scheme, host, port and app; stream key, arguments and credentials are never shown again",
      example: "rtmps://live.example:443/app",
    }),
    created_at: Time,
  })
  .openapi("Upstream");

export function upstreamRoutes(deps: UpstreamDeps): Routes["hono"] {
  const { db, clock, streamUpstreams, sessions } = deps;
  const routes = newRoutes(deps.authorise);

  routes.guarded(
    "GET /stream/{id}/upstream",
    { tag: "Streams", summary: "List a stream's upstreams", answer: z.array(Upstream), errors: [404] },
    async (c, caller) => {
      const { id } = await find(caller, c.req.param("id"));
      const upstreams = await streamUpstreams.list(caller.organisation.id, id);
      return c.json(upstreams.map(record));
    },
  );

  routes.guarded(
    "POST /stream/{id}/upstream",
    {
      tag: "Streams",
      summary: "Push a stream to one more upstream",
      description: "Every publish of the stream is pushed there from now on, a running one at once.",
      body: z.object({
        url: z.string().max(2048).openapi({ example: "rtmps://live.example/app/stream-key?token=1" }),
      }),
      bodyRequired: true,
      answer: Upstream,
      errors: [404],
    },
    async (c, caller) => {
      const { organisation } = caller;
      const { id } = await find(caller, c.req.param("id"));
      const url = urlOf(await readJson(c));
      const refusal = await deps.checkUpstreamUrl(url, organisation.id);
      if (refusal !== null) throw new InvalidValue("url", refusal.reason);
      const now = clock.now();
      const change = { action: "stream.upstream.add", subject: id, detail: { url: shownUpstream(url) } };
      const added = await changed(db, caller, now, change, (trx) =>
        streamUpstreams.add(trx, organisation.id, id, url, now),
      );
      sessions.followStream(organisation.id, id, { added });
      return c.json(record(added));
    },
  );

  routes.guarded(
    "DELETE /stream/{id}/upstream/{upstream_id}",
    {
      tag: "Streams",
      summary: "Push a stream to an upstream no longer",
      description: "A running publish leaves it at once. The answer is the upstream as it was.",
      answer: Upstream,
      errors: [404],
    },
    async (c, caller) => {
      const { organisation } = caller;
      const { id } = await find(caller, c.req.param("id"));
      const change = ({ url }: StreamUpstream) => {
        return { action: "stream.upstream.remove", subject: id, detail: { url: shownUpstream(url) } };
      };
      const removed = await changed(db, caller, clock.now(), change, (trx) =>
        streamUpstreams.remove(trx, organisation.id, id, c.req.param("upstream_id")),
      );
      sessions.followStream(organisation.id, id, { removed: removed.id });
      return c.json(record(removed));
    },
  );

  return routes.hono;

  async function find({ organisation, scopeTag }: Caller, id: string) {
    return await findStream(db, organisation.id, id, scopeTag);
  }
}

function urlOf({ url }: Readonly<Record<string, unknown>>): string {
  if (url === undefined || url === null || url === "") throw new ParameterRequired("url");
  if (typeof url !== "string") throw new WrongDataType("url", "string");
  return url;
}

function record({ id, url, createdAt }: StreamUpstream) {
  return { id, url: shownUpstream(url), created_at: new Date(createdAt).toISOString() };
}
