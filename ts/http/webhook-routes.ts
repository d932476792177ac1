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
import type { Called, Delivery, Workbench } from "../publish/webhook/workbench.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { text, wholeNumber } from "./request/schema.ts";

/** How many deliveries one list returns: by default, and at most. */
const QUANTITY = { standard: 50, most: 500, refusal: "must be a number from 1 on" } as const;
const Page = cursorOf("delivery", z.tuple([z.int(), text()]));
const CALLS = ["publish", "update_publish", "publish_done"] as const;

const Settings = z.object(organisationSettings.shape).openapi("OrganisationSettings");
const Reason = z.string().nullable().openapi({
  description: "Of a 403 its first line; of a call without an answer why, in the platform's words",
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
        "Values of custom arguments are masked; so is the query of the URL, but for administrators of the organisation",
    }),
    outcome: z.enum(["answered", ...UNREACHABLE_CAUSES]),
    status: z.int().nullable(),
    reason: Reason,
    latency_ms: z.int(),
    attempts: z.int(),
    first_at: Time,
    last_at: Time,
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
  const routes = newRoutes(deps);

  routes.guarded(
    "POST /organisation/webhook/secret",
    {
      tag: "Organisation",
      summary: "Make or rotate the webhook secret",
      description: "Shown this once. The former secret signs along for 24 hours (Standard Webhooks: two signatures).",
      answer: z.object({
        secret: z.string().openapi({ example: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" }),
      }),
    },
    async (c, caller) => {
      const { id } = caller.organisation;
      const change = { action: "webhook.secret", subject: id };
      const secret = await changed(db, caller, clock.now(), change, (trx) => secrets.rotate(trx, id));
      customers.forget(id);
      return c.json({ secret });
    },
  );

  routes.guarded(
    "POST /organisation/webhook/test",
    {
      tag: "Organisation",
      summary: "Call the webhook about a publish that does not exist",
      description: "The call is signed like any other and has client id 0. Nothing comes of the answer.",
      body: z.object({
        arguments: z
          .string()
          .nullable()
          .optional()
          .openapi({ description: "Custom arguments of the broadcaster", example: "passcode=s3cret" }),
      }),
      answer: CallRecord,
      errors: [404],
    },
    async (c, { organisation }, { body }) => {
      const called = await workbench.test(organisation.id, argumentsOf(body.arguments ?? null), c.get("trace"));
      return c.json(callRecord(called));
    },
  );

  routes.guarded(
    "GET /organisation/webhook/deliveries",
    {
      tag: "Organisation",
      summary: "What the webhook was sent, newest first",
      description:
        "Every publish and publish_done, every failure, and the latest good update of each publish; for 30 days.",
      query: z.object({
        ...pageQuery(QUANTITY, Page),
        call: z.enum(CALLS).optional().openapi({ description: "Only these events", example: "publish" }),
        clientid: wholeNumber("must be a number").optional().openapi({ description: "Only of this publish" }),
        name: z.string().optional().openapi({ description: "Only of this stream name", example: "Ab1Cd-9XyZ0" }),
        failed: z.enum(["true", "false"]).optional().openapi({ description: "true: only what failed" }),
        before: z
          .string()
          .refine((given) => !Number.isNaN(Date.parse(given)), "must be a time as in last_at")
          .transform((given) => Date.parse(given))
          .optional()
          .openapi({
            type: "string",
            format: "date-time",
            deprecated: true,
            description: "A last_at: only older ones",
          }),
      }),
      answer: z.array(DeliveryRecord),
    },
    async (
      c,
      caller,
      { query: { quantity, cursor, call = null, clientid: clientId = null, before = null, ...query } },
    ) => {
      const [lastAt, id] = cursor ?? [];
      const found = await workbench.list(caller.organisation.id, {
        call,
        clientId,
        before,
        name: query.name?.includes("\0") ? "" : (query.name ?? null), // no name has one, and the store takes no NUL
        failed: query.failed === "true",
        behind: lastAt === undefined || id === undefined ? null : { lastAt, id },
        quantity: quantity + 1,
      });
      const positionOf = (delivery: Delivery): [number, string] => [delivery.lastAt, delivery.id];
      const shown = pageOf(c, found, { quantity, cursor: Page, positionOf });
      return c.json(shown.map((delivery) => deliveryRecord(delivery, caller)));
    },
  );

  routes.guarded(
    "GET /organisation/webhook/deliveries/{id}",
    { tag: "Organisation", summary: "One delivery", answer: DeliveryRecord, errors: [404] },
    async (c, caller) =>
      c.json(deliveryRecord(await workbench.find(caller.organisation.id, c.req.param("id")), caller)),
  );

  routes.guarded(
    "POST /organisation/webhook/deliveries/{id}/replay",
    {
      tag: "Organisation",
      summary: "Send a delivery once more",
      description: "The same body under the same webhook-id, to the webhook as it is now. No publish is decided by it.",
      answer: CallRecord,
      errors: [404],
    },
    async (c, caller) => {
      const id = c.req.param("id");
      // Recorded before it is sent, because what was sent cannot be taken back.
      const note = () => recordChange(db, caller, clock.now(), { action: "delivery.replay", subject: id });
      return c.json(callRecord(await workbench.replay(caller.organisation.id, id, note, c.get("trace"))));
    },
  );

  routes.guarded(
    "GET /organisation/settings",
    { tag: "Organisation", summary: "The switches of the organisation", answer: Settings },
    async (c, { organisation }) => c.json(await readSettings(db, organisation.id)),
  );

  routes.guarded(
    "PUT /organisation/settings",
    {
      tag: "Organisation",
      summary: "Change switches of the organisation",
      description: "Those that are not named stay as they are.",
      body: settingsChange,
      answer: Settings,
    },
    async (c, caller, { body }) => {
      const { id } = caller.organisation;
      const change = givenSettings(body);
      const now = clock.now();
      const told = { action: "settings.change", subject: id, detail: change };
      const settings = await changed(db, caller, now, told, (trx) => changeSettings(trx, id, change, now));
      customers.forget(id);
      return c.json(settings);
    },
  );

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
