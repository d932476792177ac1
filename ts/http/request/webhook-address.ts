// What the routes of the webhook and of the second one share: the address as given, its check, and the secret.
import { z } from "@hono/zod-openapi";
import type { Kysely } from "kysely";
import { BadWebhookUrl } from "../../errors.ts";
import { type Actor, changed } from "../../organisation/audit.ts";
import type { Caller } from "../../organisation/callers.ts";
import type { Customers } from "../../organisation/customers.ts";
import type { WebhookSecrets } from "../../organisation/webhook-secret.ts";
import type { CheckWebhookUrl } from "../../publish/addresses/address-guard.ts";
import type { Schema } from "../../store/schema.ts";

/** null or an empty string removes it. */
export const webhookAddress = (openapi: { readonly description: string; readonly example: string }) =>
  z
    .string()
    .nullable()
    .transform((given) => (given === "" ? null : given))
    .openapi({ ...openapi, maxLength: 2_048 });

export const NewSecret = z.object({
  secret: z.string().openapi({ example: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" }),
});

/** Before an address is saved: throws `BadWebhookUrl`, and sees that calls to it can be signed. */
export async function acceptAddress(
  deps: {
    /** null when it may be saved (W21). */
    readonly checkWebhookUrl: CheckWebhookUrl;
    readonly config: { readonly dev: boolean };
  },
  secrets: Pick<WebhookSecrets, "ensure">,
  url: string,
  organisationId: string,
): Promise<void> {
  const refusal = await deps.checkWebhookUrl(url, { dev: deps.config.dev, owner: organisationId });
  if (refusal !== null) throw new BadWebhookUrl(refusal.reason);
  await secrets.ensure(organisationId);
}

/** `action`: of the audit log. */
export async function renewSecret(
  deps: {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly customers: Pick<Customers, "forget">;
  },
  secrets: Pick<WebhookSecrets, "rotate">,
  caller: Caller & Actor,
  action: "webhook.secret" | "webhook.copies.secret",
): Promise<z.infer<typeof NewSecret>> {
  const { id } = caller.organisation;
  const secret = await changed(deps.db, caller, deps.clock.now(), { action, subject: id }, (trx) =>
    secrets.rotate(trx, id),
  );
  deps.customers.forget(id);
  return { secret };
}
