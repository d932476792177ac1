// /live: a stream's running publish as HTTP-FLV, for the pages of its organisation.
import type { Kysely } from "kysely";
import { StoreFailed, UnknownRecord, UnknownStream } from "../../errors.ts";
import type { Caller } from "../../organisation/callers.ts";
import { findStream } from "../../organisation/streams.ts";
import { PREVIEWS_LIMIT, type Previews } from "../../publish/preview/previews.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes } from "../openapi.ts";
import { credentialsOf } from "../request/request.ts";

const CONTENT_TYPE = "video/x-flv";

export const PREVIEW_ROUTES = {
  "GET /live/{file}": {
    about: "stream",
    long: true,
    tag: "Streams",
    summary: "Preview of a live stream, as HTTP-FLV",
    description:
      `\`/live/<id of the stream>.flv\`. It begins at a keyframe, catches up, and continues until the publish ends, the ` +
      "caller may no longer see the stream, or the request is aborted. A client that reads too slowly loses frames. Audio " +
      "and video are as the broadcaster sends them; Opus, and video other than H.264, in Enhanced RTMP format. 404 " +
      "with code 9007 when the stream is not live. A preview counts neither as a player nor in `bytes_out`. At most " +
      `${PREVIEWS_LIMIT} previews are served at once. Beyond that, the organisation with the most loses one to an organisation ` +
      "with fewer; otherwise 503 with code 9504 and Retry-After.",
    answer: null,
    answerType: CONTENT_TYPE,
    errors: [404],
  },
} satisfies Declarations;

export function previewRoutes(
  deps: RouteDeps & { readonly db: Kysely<Schema>; readonly previews: Pick<Previews, "open"> },
): Routes["hono"] {
  const { db, authorise, previews } = deps;
  const routes = newRoutes(deps, PREVIEW_ROUTES);

  routes.guarded("GET /live/{file}", async (c, caller) => {
    const id = /^(?<id>.+)\.flv$/.exec(c.req.param("file"))?.groups?.id;
    if (id === undefined) throw new UnknownStream();
    const { id: streamId } = await findStream(db, caller.organisation.id, id, caller.scopeTag);
    const credentials = credentialsOf(c);
    const mayGoOn = () => mayStillSee(streamId, caller, () => authorise(credentials, "view"));
    const body = previews.open({ organisationId: caller.organisation.id, streamId, mayGoOn });
    if (body === null) throw new UnknownRecord("session");
    const headers = {
      "content-type": CONTENT_TYPE,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    };
    if (c.req.method !== "HEAD") return c.body(body, 200, headers);
    await body.cancel(); // a response to HEAD has no body
    return c.body(null, 200, headers);
  });

  return routes.hono;

  /** Whether the same caller, in the same role, would be served again. A temporary failure of the store decides
   *  nothing. */
  async function mayStillSee(streamId: string, before: Caller, again: () => Promise<Caller>): Promise<boolean> {
    try {
      const now = await again();
      await findStream(db, now.organisation.id, streamId, now.scopeTag);
      return now.organisation.id === before.organisation.id && now.role === before.role;
    } catch (error) {
      return error instanceof StoreFailed;
    }
  }
}
