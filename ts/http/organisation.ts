// /organisation and /organisation/webhook (specification §2; M5–M7).
import type { Kysely } from "kysely";
import { BadWebhookUrl, ParameterRequired, WrongDataType } from "../errors.ts";
import type { Authorise } from "../organisation/callers.ts";
import { setWebhook } from "../organisation/organisations.ts";
import type { checkWebhookUrl } from "../publish/address-guard.ts";
import { readJson } from "../request.ts";
import type { OrganisationTable, Schema } from "../store/schema.ts";
import { newRoutes, Organisation, type Routes, z } from "./openapi.ts";

/** Judges a webhook URL at save: null when it may be saved (W21). */
export type CheckWebhookUrl = typeof checkWebhookUrl;

export function organisationRoutes(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
  readonly checkWebhookUrl: CheckWebhookUrl;
  readonly config: { readonly dev: boolean };
}): Routes["hono"] {
  const { db, clock, config } = deps;
  const routes = newRoutes(deps.authorise);

  routes.guarded(
    "GET /organisation",
    { tag: "Organisation", summary: "The organisation", answer: Organisation },
    (c, { organisation }) => c.json(organisationRecord(organisation)),
  );

  routes.guarded(
    "PUT /organisation/webhook",
    {
      tag: "Organisation",
      summary: "Set the webhook",
      description:
        "The HTTPS address that is asked about every publish. null or an empty string removes it. It must be publicly " +
        "reachable, without user name and fragment, and at most 2048 bytes long; otherwise 400 with code 9001 and a reason.",
      body: z.object({ webhook: z.string().max(2_048).nullable() }),
      bodyRequired: true,
      answer: Organisation,
    },
    async (c, { organisation }) => {
      const webhook = webhookOf(await readJson(c));
      const refusal = webhook === null ? null : await deps.checkWebhookUrl(webhook, { dev: config.dev });
      if (refusal !== null) throw new BadWebhookUrl(refusal.reason);
      return c.json(organisationRecord(await setWebhook(db, organisation.id, webhook, clock.now())));
    },
  );

  routes.guarded(
    "DELETE /organisation/webhook",
    {
      tag: "Organisation",
      summary: "Remove the webhook",
      description: "From then on every publish of an existing, unlocked stream is allowed.",
      answer: Organisation,
    },
    async (c, { organisation }) => c.json(organisationRecord(await setWebhook(db, organisation.id, null, clock.now()))),
  );

  return routes.hono;
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
