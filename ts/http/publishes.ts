// /stream/{id}/publish: the publishes of a stream, newest first, and why each ended or was denied.
import type { Kysely } from "kysely";
import { namesOf, seesNames } from "../organisation/reads/names.ts";
import { findStream } from "../organisation/streams.ts";
import { listPublishes, type PastPublish, type PublishPosition } from "../publish/monitoring/publish-list.ts";
import type { Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";
import { Publish, publishRecord } from "./records/publish.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { timeFilters } from "./request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 50, most: 500 } as const;
const Page = cursorOf("publish", z.tuple([z.int(), z.int()]));

export const PUBLISH_ROUTES = {
  "GET /stream/{id}/publish": {
    tag: "Streams",
    summary: "Publishes of a stream, newest first",
    description:
      "Publishes that the webhook was asked about, or, without a webhook, those that went live; as long as " +
      "`retention.publishes_days` keeps them. Values not known for older publishes are null.",
    query: z.object({ ...pageQuery(QUANTITY, Page), ...timeFilters() }),
    answer: z.array(Publish),
    errors: [404],
  },
} satisfies Declarations;

export function publishRoutes(deps: RouteDeps & { readonly db: Kysely<Schema> }): Routes["hono"] {
  const routes = newRoutes(deps, PUBLISH_ROUTES);
  routes.guarded(
    "GET /stream/{id}/publish",
    async (c, caller, { query: { quantity, cursor, from = null, to = null } }) => {
      const { organisation, scopeTag } = caller;
      const stream = await findStream(deps.db, organisation.id, c.req.param("id"), scopeTag);
      const page = { before: cursor ?? null, quantity: quantity + 1, from, to };
      const found = await listPublishes(deps.db, stream.id, page);
      const positionOf = ({ askedAt, clientId }: PastPublish): PublishPosition => [askedAt, clientId];
      const shown = pageOf(c, found, { quantity, cursor: Page, positionOf });
      const enders = seesNames(caller) ? shown.map(({ ending }) => ending?.who ?? null) : [];
      const nameOf = await namesOf(deps.db, organisation.id, enders);
      return c.json(shown.map((publish) => publishRecord(publish, nameOf)));
    },
  );
  return routes.hono;
}
