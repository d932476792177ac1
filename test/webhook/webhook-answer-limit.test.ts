// W10: at most 64 KiB of an answer are read, whatever its announced size; then the connection is closed, and
// the status counts.

import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createWebhook, type Webhook } from "../../ts/publish/webhook/call.ts";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";

const LIMIT_BYTES = 64 * 1024;

let customer: Customer;
let webhook: Webhook;

beforeEach(async () => {
  customer = await startCustomer();
  const log = pino({ level: "silent" });
  webhook = createWebhook({ webhookCa: customer.ca, dev: true, log, clock: { now: () => 0 } });
});
afterEach(async () => {
  await webhook.close();
  await customer.close();
});

/** Calls and waits until the connection is free again, or gone. */
async function post() {
  const body = Buffer.from("call=publish");
  const event = { call: "publish", clientId: 1, name: "Ab1Cd-x", attempt: 1 } as const;
  const call = { organisationId: "org1", url: customer.url, id: "msg_1", body, keys: [], event };
  const answer = await webhook.post({ ...call, deadlineMs: 5_000, retryConnection: false });
  await until("the exchange is over", () => webhook.load().inFlight === 0);
  return answer;
}

/** How many connections two calls use that get this answer. */
async function connectionsFor(answer: { readonly status: number; readonly body: Buffer }): Promise<number> {
  customer.answer(answer);
  for (let call = 0; call < 2; call += 1) {
    expect(await post()).toMatchObject({ outcome: "answered", status: answer.status });
  }
  return customer.connections();
}

test.each([200, 403])("the connection of an answer %i of 64 KiB is reused", async (status) => {
  expect(await connectionsFor({ status, body: Buffer.alloc(LIMIT_BYTES, "x") })).toBe(1);
});

test.each([200, 403])("the connection of an answer %i of one more byte is closed", async (status) => {
  expect(await connectionsFor({ status, body: Buffer.alloc(LIMIT_BYTES + 1, "x") })).toBe(2);
});
