// /organisation/webhook/copies: the second webhook, which gets copies of the calls to the first one, and alerts. Its test
// and its deliveries are among the routes of the webhook (webhook-routes.ts).
import type { Kysely } from "kysely";
import { type Actor, changed } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import type { Customers } from "../organisation/customers.ts";
import {
  COPIED_EVENTS,
  type CopyAddress,
  readCopyAddress,
  setCopyAddress,
} from "../organisation/webhook/copy-address.ts";
import type { WebhookSecrets } from "../organisation/webhook-secret.ts";
import { webhookShownTo, withoutQuery } from "../organisation/webhook-url.ts";
import type { CheckWebhookUrl } from "../publish/addresses/address-guard.ts";
import type { Workbench } from "../publish/webhook/workbench.ts";
import type { Schema } from "../store/schema.ts";
import { WebhookFailure, webhookFailureOf } from "./monitoring/webhook-failure.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, z } from "./openapi.ts";
import { acceptAddress, NewSecret, renewSecret, webhookAddress } from "./request/webhook-address.ts";

const Events = z.enum(COPIED_EVENTS).openapi({
  description: "all: copies of publish, update_publish and publish_done, and alerts (call=health); alerts: those alone",
});
const WebhookCopies = z
  .object({
    webhook: z.string().nullable().openapi({ example: "https://staging.customer.example/publish" }),
    events: Events,
    secret_set: z.boolean(),
    failure: WebhookFailure.openapi({
      description: "The latest call to it, if it failed within the last hour: no answer, or neither 2xx nor 410",
    }),
  })
  .openapi("WebhookCopies");

export const WEBHOOK_COPY_ROUTES = {
  "GET /organisation/webhook/copies": {
    tag: "Organisation",
    summary: "The second webhook, which gets copies",
    description: "The query of its URL is `?…`, except for administrators of the organisation.",
    answer: WebhookCopies,
  },
  "PUT /organisation/webhook/copies": {
    tag: "Organisation",
    summary: "Set the second webhook",
    description:
      "It gets copies of the calls to the webhook and alerts, signed with its own secret. Its answers decide nothing, and " +
      "no publish waits for it. null or an empty string removes it. The same addresses are refused as for the webhook.",
    body: z.object({
      webhook: webhookAddress({
        description: "null or an empty string: none",
        example: "https://staging.customer.example/publish",
      }),
      events: z.enum(COPIED_EVENTS).optional().openapi({ description: "By default all, or as before" }),
    }),
    bodyRequired: true,
    answer: WebhookCopies,
  },
  "DELETE /organisation/webhook/copies": {
    tag: "Organisation",
    summary: "Remove the second webhook",
    description: "What it has not got yet is not sent any more.",
    answer: WebhookCopies,
  },
  "POST /organisation/webhook/copies/secret": {
    tag: "Organisation",
    summary: "Create or rotate the secret of the second webhook",
    description: "Shown only in this response. For 24 hours, calls are also signed with the old secret.",
    answer: NewSecret,
  },
} satisfies Declarations;

export function webhookCopyRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly checkWebhookUrl: CheckWebhookUrl;
    readonly copySecrets: Pick<WebhookSecrets, "ensure" | "isSet" | "rotate">;
    readonly customers: Pick<Customers, "forget">;
    readonly workbench: Pick<Workbench, "copiesChanged">;
    readonly config: { readonly dev: boolean };
  },
): Routes["hono"] {
  const { db, clock, copySecrets, customers, workbench } = deps;
  const routes = newRoutes(deps, WEBHOOK_COPY_ROUTES);

  routes.guarded("GET /organisation/webhook/copies", async (c, caller) =>
    c.json(await record(caller, await readCopyAddress(db, caller.organisation.id))),
  );

  routes.guarded("PUT /organisation/webhook/copies", async (c, caller, { body: { webhook: url, events } }) => {
    if (url === null) return c.json(await change(caller, null));
    await acceptAddress(deps, copySecrets, url, caller.organisation.id);
    return c.json(await change(caller, { url, events: events ?? "all" }, events === undefined));
  });

  routes.guarded("DELETE /organisation/webhook/copies", async (c, caller) => c.json(await change(caller, null)));

  routes.guarded("POST /organisation/webhook/copies/secret", async (c, caller) =>
    c.json(await renewSecret(deps, copySecrets, caller, "webhook.copies.secret")),
  );

  return routes.hono;

  /** `keepsEvents`: what it gets stays as it was. */
  async function change(caller: Caller & Actor, given: CopyAddress | null, keepsEvents = false) {
    const now = clock.now();
    const { id } = caller.organisation;
    const former = await readCopyAddress(db, id);
    const address = given && { url: given.url, events: keepsEvents ? (former?.events ?? given.events) : given.events };
    // The audit log is kept for a year or longer, so it leaves out the URLs' queries.
    const detail = {
      webhook: address && withoutQuery(address.url),
      events: address?.events ?? null,
      former: former && withoutQuery(former.url),
    };
    const what = { action: address === null ? "webhook.copies.remove" : "webhook.copies.set", subject: id, detail };
    await changed(db, caller, now, what, (trx) => setCopyAddress(trx, id, address, now));
    customers.forget(id);
    if (address?.url !== former?.url) workbench.copiesChanged(id, address?.url ?? null);
    return await record(caller, address);
  }

  async function record(caller: Caller, address: CopyAddress | null) {
    const { id: organisationId } = caller.organisation;
    const url = address?.url ?? null;
    return {
      webhook: url === null ? null : webhookShownTo(caller, url),
      events: address?.events ?? "all",
      secret_set: await copySecrets.isSet(organisationId),
      failure: await webhookFailureOf(db, { organisationId, url, copies: true }, clock.now()),
    };
  }
}
