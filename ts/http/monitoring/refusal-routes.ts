// /refusal and /stream/{id}/refusal: why publishes and plays were refused, newest first.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { isOperator } from "../../organisation/organisations.ts";
import { findStream } from "../../organisation/streams.ts";
import { REFUSAL_REASONS } from "../../publish/refusals/reasons.ts";
import {
  listRefusals,
  REFUSAL_WINDOW,
  type RefusalFilter,
  type RefusalPosition,
} from "../../publish/refusals/refusal-list.ts";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, type Env, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { Refusal, refusalRecord } from "../records/refusal.ts";
import { cursorOf, pageOf, pageQuery } from "../request/page.ts";
import { text, timeFilters } from "../request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 50, most: 500 } as const;
/** Longest id of a stream in a filter, characters. */
const ID_LIMIT = 64;
const Page = cursorOf("refusal", z.tuple([z.int(), z.int(), text({ most: ID_LIMIT })]));

const FILTERS = {
  ...pageQuery(QUANTITY, Page),
  reason: z.enum(REFUSAL_REASONS).optional().openapi({ description: "Only refusals for this reason" }),
  request: z.enum(["publish", "play"]).optional().openapi({ description: "Only publishes, or only plays" }),
  ...timeFilters(),
};
const DESCRIPTION =
  "Whatever refused them: the service itself, or the webhook. Kept as long as `retention.denied_days` says; publishes " +
  "that the webhook denied as long as `retention.publishes_days`. " +
  `With a filter, one request looks at ${REFUSAL_WINDOW} entries of each kind at most: a page may then be shorter than ` +
  "`quantity` and still have a next one, as x-next-cursor says.";

type Query = Readonly<{
  quantity: number;
  cursor?: RefusalPosition | undefined;
  reason?: string | undefined;
  request?: "publish" | "play" | undefined;
  from?: number | undefined;
  to?: number | undefined;
}>;

export const REFUSAL_ROUTES = {
  "GET /refusal": {
    tag: "Streams",
    summary: "Refused publishes and plays, newest first",
    description: `${DESCRIPTION} Names that no stream has are shown to the operator only: administrators of the deployment's own organisation.`,
    query: z.object({
      ...FILTERS,
      stream: text({ most: ID_LIMIT }).optional().openapi({ description: "Only of the stream with this id" }),
    }),
    answer: z.array(Refusal),
    errors: [404],
  },
  "GET /stream/{id}/refusal": {
    tag: "Streams",
    summary: "Refused publishes and plays of a stream, newest first",
    description: DESCRIPTION,
    query: z.object(FILTERS),
    answer: z.array(Refusal),
    errors: [404],
  },
} satisfies Declarations;

export function refusalRoutes(deps: RouteDeps & { readonly db: Kysely<Schema> }): Routes["hono"] {
  const { db } = deps;
  const routes = newRoutes(deps, REFUSAL_ROUTES);
  routes.guarded("GET /refusal", async (c, caller, { query }) => {
    const { id: organisationId } = caller.organisation;
    const stream = query.stream === undefined ? null : await findStream(db, organisationId, query.stream, null);
    return await answer(c, query, { organisationId, streamId: stream?.id ?? null, unknown: isOperator(caller) });
  });
  routes.guarded("GET /stream/{id}/refusal", async (c, { organisation, scopeTag }, { query }) => {
    const stream = await findStream(db, organisation.id, c.req.param("id"), scopeTag);
    return await answer(c, query, { organisationId: organisation.id, streamId: stream.id, unknown: false });
  });
  return routes.hono;

  async function answer(
    c: Context<Env>,
    query: Query,
    whose: Pick<RefusalFilter, "organisationId" | "streamId" | "unknown">,
  ): Promise<Response> {
    const { quantity, cursor: behind = null, reason = null, request = null, from = null, to = null } = query;
    const filter = { ...whose, reason, request, from, to, behind, quantity: quantity + 1 };
    const { refusals, rest } = await listRefusals(db, filter);
    const page = { quantity, cursor: Page, positionOf: ({ position }: (typeof refusals)[number]) => position };
    return c.json(pageOf(c, refusals, page, rest).map(refusalRecord));
  }
}
