// /organisation and /organisation/webhook (specification §2; M5–M7).
import { Hono } from "hono";
import type { Kysely } from "kysely";
import { BadWebhookUrl, ParameterRequired, WrongDataType } from "../errors.ts";
import type { ApiKeys } from "../organisation/api-keys.ts";
import { setWebhook } from "../organisation/organisations.ts";
import type { checkWebhookUrl } from "../publish/address-guard.ts";
import { apiKeyOf, readJson } from "../request.ts";
import type { OrganisationTable, Schema } from "../store/schema.ts";

/** Judges a webhook URL at save: null when it may be saved (W21). */
export type CheckWebhookUrl = typeof checkWebhookUrl;

export function organisationRoutes(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly apiKeys: ApiKeys;
  readonly checkWebhookUrl: CheckWebhookUrl;
  readonly config: { readonly dev: boolean };
}): Hono {
  const { db, clock, apiKeys, config } = deps;
  const routes = new Hono();

  routes.get("/organisation", async (c) => {
    const { organisation } = await apiKeys.authorise(apiKeyOf(c), "view");
    return c.json(organisationRecord(organisation));
  });

  routes.put("/organisation/webhook", async (c) => {
    const { organisation } = await apiKeys.authorise(apiKeyOf(c), "change_webhook");
    const webhook = webhookOf(await readJson(c));
    const refusal = webhook === null ? null : await deps.checkWebhookUrl(webhook, { dev: config.dev });
    if (refusal !== null) throw new BadWebhookUrl(refusal.reason);
    return c.json(organisationRecord(await setWebhook(db, organisation.id, webhook, clock.now())));
  });

  routes.delete("/organisation/webhook", async (c) => {
    const { organisation } = await apiKeys.authorise(apiKeyOf(c), "change_webhook");
    return c.json(organisationRecord(await setWebhook(db, organisation.id, null, clock.now())));
  });

  return routes;
}

/** The wish of a PUT: a URL, or null to remove the webhook (M6: null or ""). */
function webhookOf(body: Readonly<Record<string, unknown>>): string | null {
  const { webhook } = body;
  if (webhook === undefined) throw new ParameterRequired("webhook");
  if (webhook === null || webhook === "") return null;
  if (typeof webhook !== "string") throw new WrongDataType("webhook", "string");
  return webhook;
}

/** The organisation as callers see it (M7). Webhook secrets do not exist yet, so none is set. */
function organisationRecord(organisation: OrganisationTable) {
  return {
    id: organisation.id,
    hash: organisation.hash,
    name: organisation.name,
    webhook: organisation.webhook,
    webhook_secret_set: false,
    plan: organisation.plan,
    created_at: new Date(Number(organisation.created_at)).toISOString(),
    updated_at: new Date(Number(organisation.updated_at)).toISOString(),
  };
}
