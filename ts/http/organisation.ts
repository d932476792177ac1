// /organisation and /organisation/webhook (docs/management.md; M5–M7).
import type { Kysely } from "kysely";
import type { CapacityConfig, OrganisationLimits } from "../capacity/settings.ts";
import { type Actor, changed } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import type { Customers } from "../organisation/customers.ts";
import { setWebhook } from "../organisation/organisations.ts";
import type { WebhookSecrets } from "../organisation/webhook-secret.ts";
import { webhookShownTo, withoutQuery } from "../organisation/webhook-url.ts";
import type { CheckWebhookUrl } from "../publish/addresses/address-guard.ts";
import { limitsOf } from "../publish/limits/organisation-limiter.ts";
import type { Workbench } from "../publish/webhook/workbench.ts";
import type { OrganisationTable, Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, Organisation, type RouteDeps, type Routes, z } from "./openapi.ts";
import { acceptAddress, webhookAddress } from "./request/webhook-address.ts";

export const ORGANISATION_ROUTES = {
  "GET /organisation": {
    tag: "Organisation",
    summary: "The organisation",
    description:
      "Administrators see the full webhook URL; for everyone else, and for keys with a scope, its query is `?…`.",
    answer: Organisation,
  },
  "PUT /organisation/webhook": {
    tag: "Organisation",
    summary: "Set the webhook",
    description:
      "The HTTPS address that is called for every publish. null or an empty string removes it. It must be publicly " +
      "reachable, without user name and fragment, and at most 2048 bytes long; otherwise 400 with code 9001 and a reason.",
    body: z.object({
      webhook: webhookAddress({
        description: "null or an empty string: no webhook (M6)",
        example: "https://customer.example/publish",
      }),
    }),
    bodyRequired: true,
    answer: Organisation,
  },
  "DELETE /organisation/webhook": {
    tag: "Organisation",
    summary: "Remove the webhook",
    description: "From then on every publish to an existing, unlocked stream is allowed.",
    answer: Organisation,
  },
} satisfies Declarations;

export function organisationRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly checkWebhookUrl: CheckWebhookUrl;
    readonly secrets: Pick<WebhookSecrets, "ensure" | "isSet">;
    readonly customers: Pick<Customers, "forget">;
    readonly workbench: Pick<Workbench, "webhookChanged">;
    readonly config: { readonly dev: boolean; readonly capacity: Pick<CapacityConfig, "organisation"> };
  },
): Routes["hono"] {
  const { db, clock, config, secrets, customers, workbench } = deps;
  const routes = newRoutes(deps, ORGANISATION_ROUTES);
  const record = async (organisation: OrganisationTable, caller: Caller) =>
    organisationRecord(organisation, caller, {
      isSecretSet: await secrets.isSet(organisation.id),
      limits: limitsOf(organisation, config.capacity.organisation),
    });

  routes.guarded("GET /organisation", async (c, caller) => c.json(await record(caller.organisation, caller)));

  routes.guarded("PUT /organisation/webhook", async (c, caller, { body: { webhook } }) => {
    if (webhook !== null) await acceptAddress(deps, secrets, webhook, caller.organisation.id);
    return c.json(await change(caller, webhook));
  });

  routes.guarded("DELETE /organisation/webhook", async (c, caller) => c.json(await change(caller, null)));

  return routes.hono;

  async function change(caller: Caller & Actor, webhook: string | null) {
    const now = clock.now();
    const { id, webhook: former } = caller.organisation;
    // The audit log is kept for a year or longer, so it leaves out the URLs' queries.
    const detail = {
      origin: webhook === null ? null : new URL(webhook).origin,
      webhook: webhook === null ? null : withoutQuery(webhook),
      former: former === null ? null : withoutQuery(former),
    };
    const what = { action: webhook === null ? "webhook.remove" : "webhook.set", subject: id, detail };
    const organisation = await changed(db, caller, now, what, (trx) => setWebhook(trx, id, webhook, now));
    customers.forget(id);
    if (webhook !== former) workbench.webhookChanged(id, webhook);
    return await record(organisation, caller);
  }
}

/** The organisation as callers see it (M7). */
function organisationRecord(
  organisation: OrganisationTable,
  caller: Caller,
  { isSecretSet, limits }: { readonly isSecretSet: boolean; readonly limits: OrganisationLimits },
) {
  return {
    id: organisation.id,
    hash: organisation.hash,
    name: organisation.name,
    webhook: organisation.webhook === null ? null : webhookShownTo(caller, organisation.webhook),
    webhook_secret_set: isSecretSet,
    plan: organisation.plan,
    limits: {
      streams: limits.streams,
      ingest_kbps: limits.ingestKbps,
      setups_per_second: limits.setupsPerSecond,
    },
    created_at: new Date(Number(organisation.created_at)).toISOString(),
    updated_at: new Date(Number(organisation.updated_at)).toISOString(),
  };
}
