// /stream/{id}/title and /external-id: what people and the customer's own systems call a stream (M9a).
import type { Context } from "hono";
import { type Actor, changed } from "../../organisation/audit.ts";
import type { Caller } from "../../organisation/callers.ts";
import { findStream } from "../../organisation/streams.ts";
import { readExternalId, readTitle, type StreamTexts, setTexts } from "../../organisation/titles/stream-titles.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { Stream } from "../records/stream.ts";
import { type RecordDeps, recordOf } from "../request/stream-record.ts";
import { GivenExternalId, GivenTitle } from "../request/stream-texts.ts";

export const STREAM_TITLE_ROUTES = {
  "PUT /stream/{id}/title": {
    tag: "Streams",
    summary: "Set the title of a stream",
    description: "People see it in lists and on /broadcast. Webhook calls never contain it.",
    body: z.object({ title: GivenTitle }),
    bodyRequired: true,
    answer: Stream,
    errors: [404],
  },
  "PUT /stream/{id}/external-id": {
    tag: "Streams",
    summary: "Set your own id of a stream",
    description:
      "`GET /stream?external_id=…` finds the stream by it. Another stream that has it already is named in the refusal " +
      "(1003). A deleted stream frees it. Webhook calls never contain it.",
    body: z.object({ external_id: GivenExternalId }),
    bodyRequired: true,
    answer: Stream,
    errors: [404],
  },
} satisfies Declarations;

export function streamTitleRoutes(deps: RouteDeps & RecordDeps): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps, STREAM_TITLE_ROUTES);

  routes.guarded("PUT /stream/{id}/title", async (c, caller, { body }) => {
    const title = readTitle(body.title);
    return await set(c, caller, "stream.title", { title }, { title });
  });

  routes.guarded("PUT /stream/{id}/external-id", async (c, caller, { body }) => {
    const externalId = readExternalId(body.external_id);
    return await set(c, caller, "stream.external_id", { external_id: externalId }, { externalId });
  });

  return routes.hono;

  async function set(
    c: Context,
    caller: Caller & Actor,
    action: string,
    detail: Record<string, unknown>,
    texts: StreamTexts,
  ) {
    const { organisation, scopeTag } = caller;
    const stream = await findStream(db, organisation.id, c.req.param("id") ?? "", scopeTag);
    const now = clock.now();
    const change = { action, subject: stream.id, detail };
    const named = await changed(db, caller, now, change, (trx) =>
      setTexts(trx, stream, texts, { seenBy: scopeTag, now }),
    );
    return c.json(await recordOf(c, caller, named, deps));
  }
}
