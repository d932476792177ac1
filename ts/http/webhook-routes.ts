// /organisation/settings, and what stands below /organisation/webhook: the secret, a test, deliveries and their replay.
import type { Kysely } from "kysely";
import { InvalidValue, WrongDataType } from "../errors.ts";
import { changed, recordChange } from "../organisation/audit.ts";
import type { Authorise, Caller } from "../organisation/callers.ts";
import type { Customers } from "../organisation/customers.ts";
import {
  changeSettings,
  organisationSettings,
  readSettings,
  readSettingsChange,
  settingsChange,
} from "../organisation/settings.ts";
import type { WebhookSecrets } from "../organisation/webhook-secret.ts";
import { webhookShownTo } from "../organisation/webhook-url.ts";
import { checkCustomArguments } from "../publish/stream-name.ts";
import { UNREACHABLE_CAUSES } from "../publish/webhook/answer.ts";
import type { Called, Delivery, DeliveryFilter, Workbench } from "../publish/webhook/workbench.ts";
import type { Schema } from "../store/schema.ts";
import { newRoutes, type Routes, Time, z } from "./openapi.ts";
import { readJson } from "./request/request.ts";

/** How many deliveries one list returns: without a wish, and at most. */
const QUANTITY_DEFAULT = 50;
const QUANTITY_LIMIT = 500;
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

export function webhookRoutes(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
  readonly secrets: Pick<WebhookSecrets, "rotate">;
  readonly customers: Pick<Customers, "forget">;
  readonly workbench: Workbench;
}): Routes["hono"] {
  const { db, clock, secrets, customers, workbench } = deps;
  const routes = newRoutes(deps.authorise);

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
      body: z.object({ arguments: z.string().optional().openapi({ example: "passcode=s3cret" }) }),
      answer: CallRecord,
      errors: [404],
    },
    async (c, { organisation }) => {
      const called = await workbench.test(organisation.id, argumentsOf(await readJson(c)));
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
        quantity: z.string().optional().openapi({ description: "1 to 500, 50 unless said" }),
        call: z.enum(CALLS).optional(),
        clientid: z.string().optional(),
        name: z.string().optional(),
        failed: z.enum(["true", "false"]).optional(),
        before: z.string().optional().openapi({ description: "A last_at: only older ones" }),
      }),
      answer: z.array(DeliveryRecord),
    },
    async (c, caller) => {
      const found = await workbench.list(
        caller.organisation.id,
        filterOf((name) => c.req.query(name)),
      );
      return c.json(found.map((delivery) => deliveryRecord(delivery, caller)));
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
      // What was sent cannot be taken back: it is in the log before.
      const note = () => recordChange(db, caller, clock.now(), { action: "delivery.replay", subject: id });
      return c.json(callRecord(await workbench.replay(caller.organisation.id, id, note)));
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
      body: z.object(settingsChange.shape),
      answer: Settings,
    },
    async (c, caller) => {
      const { id } = caller.organisation;
      const change = readSettingsChange(await readJson(c));
      const now = clock.now();
      const told = { action: "settings.change", subject: id, detail: change };
      const settings = await changed(db, caller, now, told, (trx) => changeSettings(trx, id, change, now));
      customers.forget(id);
      return c.json(settings);
    },
  );

  return routes.hono;
}

function argumentsOf(body: Readonly<Record<string, unknown>>): Uint8Array | null {
  const { arguments: text } = body;
  if (text === undefined || text === null) return null;
  if (typeof text !== "string") throw new WrongDataType("arguments", "string");
  const bytes = Buffer.from(text);
  const refusal = checkCustomArguments(bytes);
  if (refusal !== null) throw new InvalidValue("arguments", `are refused: ${refusal.description}`);
  return bytes;
}

function filterOf(query: (name: string) => string | undefined): DeliveryFilter {
  const call = query("call") ?? null;
  const known = CALLS.find((name) => name === call);
  if (call !== null && known === undefined) throw new InvalidValue("call", `must be one of ${CALLS.join(", ")}`);
  const name = query("name") ?? null;
  return {
    call: known ?? null,
    clientId: numberOf("clientid", query("clientid"), 0, Number.MAX_SAFE_INTEGER),
    name: name?.includes("\0") ? "" : name, // no name has one, and the store takes no NUL
    failed: query("failed") === "true",
    before: timeOf(query("before")),
    quantity: numberOf("quantity", query("quantity"), 1, QUANTITY_LIMIT) ?? QUANTITY_DEFAULT,
  };
}

function numberOf(name: string, text: string | undefined, least: number, most: number): number | null {
  if (text === undefined) return null;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) throw new InvalidValue(name, `must be a number from ${least} to ${most}`);
  return value;
}

function timeOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new InvalidValue("before", "must be a time as in last_at");
  return time;
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
