// /organisation/status: whether something keeps broadcasts out at present, in one cheap request: every page of the
// dashboard repeats it. It reads a few rows along an index, and writes nothing.
import type { Kysely } from "kysely";
import type { Schema } from "../../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "../openapi.ts";
import { WebhookFailure, webhookFailureOf } from "./webhook-failure.ts";

const OrganisationStatus = z
  .object({
    webhook_failure: WebhookFailure.openapi({
      description:
        "The latest call to the webhook, if it failed within the last hour: no answer, or one that is neither 200 nor " +
        "a refusal (403); for publish_done neither 2xx nor 410",
    }),
    refuses_publishes: z
      .enum(["draining", "full"])
      .nullable()
      .openapi({ description: "Why the node that answered takes no new publishes; null while it does" }),
  })
  .openapi("OrganisationStatus");

export const STATUS_ROUTES = {
  "GET /organisation/status": {
    tag: "Organisation",
    summary: "Whether the webhook fails or the node refuses publishes",
    answer: OrganisationStatus,
  },
} satisfies Declarations;

export function statusRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly refusesPublishes: () => "draining" | "full" | null;
  },
): Routes["hono"] {
  const { db, clock, refusesPublishes } = deps;
  const routes = newRoutes(deps, STATUS_ROUTES);
  routes.guarded("GET /organisation/status", async (c, { organisation: { id, webhook: url } }) => {
    const failure = await webhookFailureOf(db, { organisationId: id, url, copies: false }, clock.now());
    return c.json({ webhook_failure: failure, refuses_publishes: refusesPublishes() });
  });
  return routes.hono;
}
