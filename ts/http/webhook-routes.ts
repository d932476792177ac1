// /organisation/settings, and the routes below /organisation/webhook: the secret, a test, deliveries and their replay.
import type { Kysely } from "kysely";
import { InvalidValue } from "../errors.ts";
import { changed, recordChange } from "../organisation/audit.ts";
import type { Caller } from "../organisation/callers.ts";
import type { Customers } from "../organisation/customers.ts";
import {
  changeSettings,
  givenSettings,
  organisationSettings,
  readSettings,
  settingsChange,
} from "../organisation/settings.ts";
import type { WebhookSecrets } from "../organisation/webhook-secret.ts";
import { webhookShownTo } from "../organisation/webhook-url.ts";
import { checkCustomArguments } from "../publish/stream-name.ts";
import { UNREACHABLE_CAUSES } from "../publish/webhook/answer.ts";
import { DELIVERY_WINDOW } from "../publish/webhook/delivery-list.ts";
import type { Called, Delivery, Workbench } from "../publish/webhook/workbench.ts";
import type { Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { text, timeFilters, wholeNumber } from "./request/schema.ts";
import { NewSecret, renewSecret } from "./request/webhook-address.ts";

/** How many deliveries one list returns: by default, and at most. */
const QUANTITY = { standard: 50, most: 500, refusal: "must be a number of at least 1" } as const;
const Page = cursorOf("delivery", z.tuple([z.int(), text()]));
const CALLS = ["publish", "update_publish", "publish_done", "health"] as const;

const Settings = z.object(organisationSettings.shape).openapi("OrganisationSettings");
const Reason = z.string().nullable().openapi({
  description: "For a 403, the first line of its body; for a call without an answer, the system's error message",
  example: "certificate has expired",
});
const DeliveryRecord = z
  .object({
    id: z.string().openapi({ description: "The webhook-id", example: "msg_5d0e…" }),
    call: z.enum(CALLS),
    clientid: z.int(),
    name: z.string(),
    request: z.object({ url: z.string(), body: z.string() }).openapi({
      description:
        "Values of custom arguments are masked; so is the query of the URL, except for administrators of the organisation",
    }),
    outcome: z.enum(["answered", ...UNREACHABLE_CAUSES]),
    status: z.int().nullable(),
    reason: Reason,
    latency_ms: z.int(),
    attempts: z.int(),
    first_at: Time,
    last_at: Time,
    is_copy: z.boolean().openapi({ description: "It went to the second webhook" }),
    response: z
      .object({
        headers: z.array(z.object({ name: z.string(), value: z.string() })).openapi({
          description: "Values are masked, except those of common fields that hold no secret",
        }),
        body: z.string().nullable().openapi({
          description: "The first 2 kB as text; custom arguments that it repeats are masked. null: it was compressed",
        }),
        is_cut: z.boolean().openapi({ description: "The body was longer, or did not arrive completely" }),
      })
      .nullable()
      .openapi({ description: "null: there was no response, or it was not kept yet" }),
  })
  .openapi("Delivery");
const CallRecord = z
  .object({
    id: z.string(),
    outcome: DeliveryRecord.shape.outcome,
    status: z.int().nullable(),
    reason: Reason,
    latency_ms: z.int(),
    allows: z.boolean().openapi({ description: "Whether this answer would let a publish proceed" }),
  })
  .openapi("WebhookCall");

const TestCall = z.object({
  arguments: z
    .string()
    .nullable()
    .optional()
    .openapi({ description: "Custom arguments of the broadcaster", example: "passcode=s3cret" }),
});

export const WEBHOOK_ROUTES = {
  "POST /organisation/webhook/secret": {
    tag: "Organisation",
    summary: "Create or rotate the webhook secret",
    description:
      "Shown only in this response. For 24 hours, calls are also signed with the old secret (Standard Webhooks: two signatures).",
    answer: NewSecret,
  },
  "POST /organisation/webhook/test": {
    tag: "Organisation",
    summary: "Send a test call to the webhook",
    description:
      "The call is signed like any other and has client id 0, which no publish has. The answer has no effect.",
    body: TestCall,
    answer: CallRecord,
    errors: [404],
  },
  "POST /organisation/webhook/copies/test": {
    tag: "Organisation",
    summary: "Send a test call to the second webhook",
    description: "As the test of the webhook, signed with the secret of the second one.",
    body: TestCall,
    answer: CallRecord,
    errors: [404],
  },
  "GET /organisation/webhook/deliveries": {
    tag: "Organisation",
    summary: "Calls to the webhook, newest first",
    description:
      "Every publish and publish_done, every failed call, and the latest successful update of each publish; kept for 30 days. " +
      `With a filter, one request looks at ${DELIVERY_WINDOW} calls at most: a page may then be shorter than ` +
      "`quantity` and still have a next one, as x-next-cursor says.",
    query: z.object({
      ...pageQuery(QUANTITY, Page),
      ...timeFilters(),
      call: z.enum(CALLS).optional().openapi({ description: "Only these events", example: "publish" }),
      clientid: wholeNumber("must be a number").optional().openapi({ description: "Only calls about this publish" }),
      name: z.string().optional().openapi({ description: "Only calls about this stream name", example: "Ab1Cd-9XyZ0" }),
      copies: z.enum(["true", "false"]).optional().openapi({
        description: "true: calls to the second webhook, which gets copies, in place of those to the webhook",
      }),
      failed: z.enum(["true", "false"]).optional().openapi({ description: "true: only failed or refused calls" }),
    }),
    answer: z.array(DeliveryRecord),
  },
  "GET /organisation/webhook/deliveries/{id}": {
    tag: "Organisation",
    summary: "One delivery",
    answer: DeliveryRecord,
    errors: [404],
  },
  "POST /organisation/webhook/deliveries/{id}/replay": {
    tag: "Organisation",
    summary: "Send a delivery again",
    description:
      "Sends the same body and webhook-id to the current webhook, or a copy to the second one. The answer has no effect on any publish.",
    answer: CallRecord,
    errors: [404],
  },
  "GET /organisation/settings": { tag: "Organisation", summary: "Settings of the organisation", answer: Settings },
  "PUT /organisation/settings": {
    tag: "Organisation",
    summary: "Change settings of the organisation",
    description: "Settings that are not given stay unchanged.",
    body: settingsChange,
    answer: Settings,
  },
} satisfies Declarations;

const TESTS = [
  ["POST /organisation/webhook/test", "webhook"],
  ["POST /organisation/webhook/copies/test", "copies"],
] as const;

export function webhookRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
    readonly secrets: Pick<WebhookSecrets, "rotate">;
    readonly customers: Pick<Customers, "forget">;
    readonly workbench: Workbench;
  },
): Routes["hono"] {
  const { db, clock, secrets, customers, workbench } = deps;
  const routes = newRoutes(deps, WEBHOOK_ROUTES);

  routes.guarded("POST /organisation/webhook/secret", async (c, caller) =>
    c.json(await renewSecret(deps, secrets, caller, "webhook.secret")),
  );

  for (const [route, to] of TESTS) {
    routes.guarded(route, async (c, { organisation }, { body }) => {
      const given = argumentsOf(body.arguments ?? null);
      return c.json(callRecord(await workbench.test(organisation.id, to, given, c.get("trace"))));
    });
  }

  routes.guarded(
    "GET /organisation/webhook/deliveries",
    async (c, caller, { query: { quantity, cursor, call = null, clientid: clientId = null, ...query } }) => {
      const [lastAt, id] = cursor ?? [];
      const { deliveries, rest } = await workbench.list(caller.organisation.id, {
        call,
        clientId,
        from: query.from ?? null,
        before: query.to ?? null,
        name: query.name?.includes("\0") ? "" : (query.name ?? null), // no name contains one, and the store cannot hold NUL
        copies: query.copies === "true",
        failed: query.failed === "true",
        behind: lastAt === undefined || id === undefined ? null : { lastAt, id },
        quantity: quantity + 1,
      });
      const positionOf = (delivery: Delivery): [number, string] => [delivery.lastAt, delivery.id];
      const page = { quantity, cursor: Page, positionOf };
      const shown = pageOf(c, deliveries, page, rest && [rest.lastAt, rest.id]);
      return c.json(shown.map((delivery) => deliveryRecord(delivery, caller)));
    },
  );

  routes.guarded("GET /organisation/webhook/deliveries/{id}", async (c, caller) =>
    c.json(deliveryRecord(await workbench.find(caller.organisation.id, c.req.param("id")), caller)),
  );

  routes.guarded("POST /organisation/webhook/deliveries/{id}/replay", async (c, caller) => {
    const id = c.req.param("id");
    // Recorded before it is sent, because what was sent cannot be taken back.
    const note = () => recordChange(db, caller, clock.now(), { action: "delivery.replay", subject: id });
    return c.json(callRecord(await workbench.replay(caller.organisation.id, id, note, c.get("trace"))));
  });

  routes.guarded("GET /organisation/settings", async (c, { organisation }) =>
    c.json(await readSettings(db, organisation.id)),
  );

  routes.guarded("PUT /organisation/settings", async (c, caller, { body }) => {
    const { id } = caller.organisation;
    const change = givenSettings(body);
    const now = clock.now();
    const entry = { action: "settings.change", subject: id, detail: change };
    const settings = await changed(db, caller, now, entry, (trx) => changeSettings(trx, id, change, now));
    customers.forget(id);
    return c.json(settings);
  });

  return routes.hono;
}

function argumentsOf(text: string | null): Uint8Array | null {
  if (text === null) return null;
  const bytes = Buffer.from(text);
  const refusal = checkCustomArguments(bytes);
  if (refusal !== null) throw new InvalidValue("arguments", `are refused: ${refusal.description}`);
  return bytes;
}

function deliveryRecord(
  { id, call, name, url, body, outcome, status, reason, attempts, ...rest }: Delivery,
  caller: Caller,
) {
  return {
    id,
    call,
    clientid: rest.clientId,
    name,
    request: { url: webhookShownTo(caller, url), body },
    outcome,
    status,
    reason,
    latency_ms: rest.latencyMs,
    attempts,
    first_at: new Date(rest.firstAt).toISOString(),
    last_at: new Date(rest.lastAt).toISOString(),
    is_copy: rest.isCopy,
    response: rest.response && {
      headers: rest.response.headers.map(([name, value]) => ({ name, value })),
      body: rest.response.body,
      is_cut: rest.response.isCut,
    },
  };
}

function callRecord({ id, answer, latencyMs }: Called) {
  const answered = answer.outcome === "answered" ? answer : null;
  return {
    id,
    outcome: answer.outcome === "answered" ? answer.outcome : answer.cause,
    status: answered?.status ?? null,
    reason: answer.outcome === "answered" ? answer.reason : answer.detail,
    latency_ms: latencyMs,
    allows: answered?.status === 200,
  };
}
