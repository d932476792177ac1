// /refusal and /stream/{id}/refusal: why publishes and plays were refused, newest first.
import type { Context } from "hono";
import type { Kysely } from "kysely";
import { isOperator } from "../../organisation/organisations.ts";
import { findStream } from "../../organisation/streams.ts";
import { REFUSAL_REASONS, reasonWords } from "../../publish/refusals/reasons.ts";
import {
  listRefusals,
  type PastRefusal,
  REFUSAL_WINDOW,
  type RefusalFilter,
  type RefusalPosition,
} from "../../publish/refusals/refusal-list.ts";
import type { Schema } from "../../store/schema.ts";
import { type Env, newRoutes, type RouteDeps, type Routes, Time, z } from "../openapi.ts";
import { cursorOf, pageOf, pageQuery } from "../request/page.ts";
import { text, timeFilters } from "../request/schema.ts";

/** Entries per page: by default, and at most. */
const QUANTITY = { standard: 50, most: 500 } as const;
/** Longest id of a stream in a filter, characters. */
const ID_LIMIT = 64;
const Page = cursorOf("refusal", z.tuple([z.int(), z.int(), z.string().max(ID_LIMIT)]));

const Refusal = z
  .object({
    id: z.string(),
    at: Time.openapi({ description: "When the first one was refused" }),
    last_at: Time.openapi({ description: "When the last one was refused" }),
    count: z.int().openapi({
      description:
        "Equal refusals that begin within the same ten minutes are one entry: same stream or name, address, protocol and reason",
      example: 1,
    }),
    request: z.enum(["publish", "play"]).openapi({ description: "What was refused" }),
    protocol: z.enum(["rtmp", "whip", "v5"]).nullable(),
    reason: z
      .enum(REFUSAL_REASONS)
      .openapi({ description: "A stable code; new ones may be added", example: "locked_stream" }),
    reason_words: z.string().openapi({ description: "reason in words", example: "The stream is locked." }),
    detail: z.string().nullable().openapi({ description: "What the last one was told", example: "Stream is locked" }),
    address: z
      .string()
      .nullable()
      .openapi({ description: "null: several addresses, or no longer kept", example: "203.0.113.7" }),
    stream: z
      .object({ id: z.string(), name: z.string() })
      .nullable()
      .openapi({ description: "null: no stream, or several" }),
    sent_name: z
      .string()
      .nullable()
      .openapi({ description: "For the operator: the name that was sent, where no stream has it" }),
    client_id: z
      .int()
      .nullable()
      .openapi({ description: "clientid of the webhook; null: it was not asked", example: 100_482 }),
  })
  .openapi("Refusal");

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

export function refusalRoutes(deps: RouteDeps & { readonly db: Kysely<Schema> }): Routes["hono"] {
  const { db } = deps;
  const routes = newRoutes(deps);
  routes.guarded(
    "GET /refusal",
    {
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
    async (c, caller, { query }) => {
      const { id: organisationId } = caller.organisation;
      const stream = query.stream === undefined ? null : await findStream(db, organisationId, query.stream, null);
      return await answer(c, query, { organisationId, streamId: stream?.id ?? null, unknown: isOperator(caller) });
    },
  );
  routes.guarded(
    "GET /stream/{id}/refusal",
    {
      tag: "Streams",
      summary: "Refused publishes and plays of a stream, newest first",
      description: DESCRIPTION,
      query: z.object(FILTERS),
      answer: z.array(Refusal),
      errors: [404],
    },
    async (c, { organisation, scopeTag }, { query }) => {
      const stream = await findStream(db, organisation.id, c.req.param("id"), scopeTag);
      return await answer(c, query, { organisationId: organisation.id, streamId: stream.id, unknown: false });
    },
  );
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

function refusalRecord(refusal: PastRefusal): Omit<z.infer<typeof Refusal>, "reason"> & { readonly reason: string } {
  const { id, request, protocol, reason, detail, address, stream, sentName, clientId, count } = refusal;
  return {
    id,
    at: new Date(refusal.firstAt).toISOString(),
    last_at: new Date(refusal.lastAt).toISOString(),
    ...{ count, request, protocol, reason, reason_words: reasonWords(reason), detail, address, stream },
    ...{ sent_name: sentName, client_id: clientId },
  };
}
