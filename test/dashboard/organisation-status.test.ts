// GET /organisation/status: whether the webhook fails, and whether the node takes publishes.
import { afterEach, beforeEach, expect, test } from "vitest";
import { createApp } from "../../ts/app.ts";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import type { DeliveryTable } from "../../ts/store/schema.ts";
import { openStage, type Stage } from "../support/publishing.ts";

const WEBHOOK = "https://customer.example/hook";
const HOUR_MS = 3_600_000;

let stage: Stage;
let key: string;
let deliveries = 0;

beforeEach(async () => {
  stage = await openStage({ webhook: WEBHOOK, ca: null, env: { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" } });
  key = (await addApiKey(stage.db, { organisationId: "org1", role: "readonly", now: stage.clock.ms })).key;
});
afterEach(() => stage.close());

async function status(app = stage.service.app): Promise<unknown> {
  const answer = await app.request("/organisation/status", { headers: { "x-service-apikey": key } });
  expect(answer.status).toBe(200);
  return await answer.json();
}

/** A call that was answered `agoMs` before now. */
async function called(answer: Partial<DeliveryTable>, agoMs = 0): Promise<void> {
  deliveries += 1;
  const at = stage.clock.ms - agoMs;
  await stage.db
    .insertInto("delivery")
    .values({
      ...{ id: `msg_${deliveries}`, organisation_id: "org1", client_id: 1, call: "publish", name: "Ab1Cd-9XyZ0" },
      ...{ url: WEBHOOK, body: "", outcome: "answered", status: 200, reason: null, latency_ms: 5, attempts: 1 },
      ...{ first_at: at, last_at: at, bytes: 100 },
      ...answer,
    })
    .execute();
}

const FINE = { webhook_failure: null, refuses_publishes: null };

test("nothing is wrong without calls, after an allowed one, and after a refused one", async () => {
  expect(await status()).toEqual(FINE);
  await called({});
  expect(await status()).toEqual(FINE);
  await called({ status: 403, reason: "not today" });
  expect(await status()).toEqual(FINE);
  await called({ call: "publish_done", status: 410 });
  expect(await status()).toEqual(FINE);
});

test.each<[string, Partial<DeliveryTable>]>([
  ["no answer", { outcome: "deadline", status: null }],
  ["a server error", { status: 500 }],
  ["a redirect", { status: 302 }],
  ["an end that was not taken", { call: "publish_done", status: 503 }],
])("a latest call with %s is a failure, until the next call succeeds", async (_, answer) => {
  await called({}, 2_000);
  await called(answer, 1_000);
  expect(await status()).toMatchObject({
    webhook_failure: {
      call: answer.call ?? "publish",
      outcome: answer.outcome ?? "answered",
      status: answer.status ?? null,
      at: new Date(stage.clock.ms - 1_000).toISOString(),
    },
  });
  await called({});
  expect(await status()).toEqual(FINE);
});

test("a failure of another address, or of more than an hour ago, says nothing about now", async () => {
  await called({ status: 500, url: "https://former.example/hook" });
  expect(await status()).toEqual(FINE);
  await called({ status: 500 });
  stage.clock.ms += HOUR_MS + 1;
  expect(await status()).toEqual(FINE);
});

test("a node that drains or is full says so", async () => {
  for (const refuses of ["draining", "full"] as const) {
    const app = createApp({ ...stage.service.appDeps, refusesPublishes: () => refuses });
    expect(await status(app)).toMatchObject({ refuses_publishes: refuses });
  }
});
