// /organisation/status: whether something keeps broadcasts out at present, in one cheap request: every page of the
// dashboard repeats it. It reads one row along an index, and writes nothing.
import type { Kysely } from "kysely";
import { UNREACHABLE_CAUSES } from "../../publish/webhook/answer.ts";
import { listDeliveries } from "../../publish/webhook/delivery-list.ts";
import type { OrganisationTable, Schema } from "../../store/schema.ts";
import { settlesDone } from "../../text/webhook-words.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "../openapi.ts";

/** A failure before this is no longer "at present", ms: nothing may have been broadcast since. */
const PRESENT_MS = 3_600_000;
const NEWEST = { call: null, clientId: null, name: null, failed: false, before: null, quantity: 1 } as const;

const Outcome = z.enum(["answered", ...UNREACHABLE_CAUSES]);
const OrganisationStatus = z
  .object({
    webhook_failure: z
      .object({
        delivery: z.string().openapi({ description: "Id of the call in GET /organisation/webhook/deliveries" }),
        call: z.enum(["publish", "update_publish", "publish_done"]),
        outcome: Outcome,
        status: z.int().nullable(),
        at: Time,
      })
      .nullable()
      .openapi({
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
type Failure = NonNullable<z.infer<typeof OrganisationStatus>["webhook_failure"]>;

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
  routes.guarded("GET /organisation/status", async (c, { organisation }) =>
    c.json({ webhook_failure: await failureOf(organisation), refuses_publishes: refusesPublishes() }),
  );
  return routes.hono;

  async function failureOf({ id, webhook }: Pick<OrganisationTable, "id" | "webhook">): Promise<Failure | null> {
    if (webhook === null) return null;
    const { rows } = await listDeliveries(db, id, { ...NEWEST, from: clock.now() - PRESENT_MS });
    const [newest] = rows;
    // A call to a former webhook says nothing about this one.
    if (newest === undefined || newest.url !== webhook || !isFailure(newest)) return null;
    const { call, outcome, status, last_at } = newest;
    const at = new Date(Number(last_at)).toISOString();
    return { delivery: newest.id, call, outcome: outcome as z.infer<typeof Outcome>, status, at };
  }
}

function isFailure({ call, status }: { readonly call: string; readonly status: number | null }): boolean {
  return call === "publish_done" ? !settlesDone(status) : status !== 200 && status !== 403;
}
