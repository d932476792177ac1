// /stream/{id}/key: whether publishes of a stream need its publish key (M12a), and a new key.
import { changed } from "../../organisation/audit.ts";
import { findStream, renewPublishKey, setPublishKey } from "../../organisation/streams.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { Stream } from "../records/stream.ts";
import { GivenPublishKey } from "../request/publish-key.ts";
import { type RecordDeps, recordOf } from "../request/stream-record.ts";

export const STREAM_KEY_ROUTES = {
  "PUT /stream/{id}/key": {
    tag: "Streams",
    summary: "Set whether publishes of a stream need its publish key",
    description:
      "With it, who knows only the name, such as a player, cannot publish. The addresses under `ingest` then contain " +
      "the key. A publish that already runs continues.",
    body: z.object({ publish_key: GivenPublishKey }),
    bodyRequired: true,
    answer: Stream,
    errors: [404],
  },
  "POST /stream/{id}/key": {
    tag: "Streams",
    summary: "Renew the publish key of a stream",
    description:
      "From the answer on, no node accepts the former key for a new publish. A publish that already runs continues: " +
      "PUT /stream/{id}/stop with a reason ends it.",
    answer: Stream,
    errors: [404],
  },
} satisfies Declarations;

export function streamKeyRoutes(deps: RouteDeps & RecordDeps): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps, STREAM_KEY_ROUTES);

  routes.guarded("PUT /stream/{id}/key", async (c, caller, { body: { publish_key } }) => {
    const stream = await findStream(db, caller.organisation.id, c.req.param("id"), caller.scopeTag);
    const now = clock.now();
    const change = { action: "stream.publish_key", subject: stream.id, detail: { publish_key } };
    const set = await changed(db, caller, now, change, (trx) => setPublishKey(trx, stream, publish_key, now));
    return c.json(await recordOf(c, caller, set, deps));
  });

  routes.guarded("POST /stream/{id}/key", async (c, caller) => {
    const stream = await findStream(db, caller.organisation.id, c.req.param("id"), caller.scopeTag);
    const now = clock.now();
    const change = { action: "stream.key", subject: stream.id };
    const renewed = await changed(db, caller, now, change, (trx) => renewPublishKey(trx, stream, now));
    return c.json(await recordOf(c, caller, renewed, deps));
  });

  return routes.hono;
}
