// W18: outbox events are sent in order of their due time, and of client ids where that is the same.
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { openStage, type Stage } from "../../support/publishing.ts";

/** More than are sent at a time, so that the order matters: at first one, and one more for each answer, up to 32. */
const EVENTS = 100;
const ANSWERED = 40;
const AT_ONCE = 32;

let customer: Customer;
let stage: Stage;

beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({ webhook: customer.url, ca: customer.ca, settings: { deadlineMs: 60_000 } });
});
afterEach(async () => {
  // First the customer: what hangs there would be waited for.
  await customer.close();
  await stage.close();
});

async function addEvents(events: readonly { readonly clientId: number; readonly dueMs: number }[]): Promise<void> {
  const rows = events.map(({ clientId, dueMs }) => ({
    id: `msg_${clientId}`,
    organisation_id: "org1",
    client_id: clientId,
    url: customer.url,
    body: `call=publish_done&name=Ab1Cd-x&clientid=${clientId}`,
    next_attempt_at: stage.clock.ms + dueMs,
    created_at: stage.clock.ms,
    epoch: 1, // the first service on the store
  }));
  await stage.db.insertInto("outbox").values(rows).execute();
}

const asked = () => customer.calls("publish_done").map(({ body }) => Number(new URLSearchParams(body).get("clientid")));
const ascending = (values: readonly number[]) => [...values].sort((a, b) => a - b);

/** The first calls are answered, all others hang. */
function hangLater(): void {
  customer.answer(() => (customer.calls("publish_done").length <= ANSWERED ? { status: 200 } : "hang"));
}

test("of events with the same due time, those of the oldest publishes are sent first", async () => {
  hangLater();
  await addEvents(Array.from({ length: EVENTS }, (_, at) => ({ clientId: EVENTS - at, dueMs: 0 })));
  await stage.publishing.takeOver("gateway_restarted");
  await until("all places are taken", () => asked().length === ANSWERED + AT_ONCE);
  expect(ascending(asked())).toEqual(Array.from({ length: ANSWERED + AT_ONCE }, (_, at) => at + 1));
});

test("an event that has been due longer precedes one of an older publish, and one that is not due waits", async () => {
  hangLater();
  const late = Array.from({ length: ANSWERED + AT_ONCE }, (_, at) => ({ clientId: 1_000 + at, dueMs: -1_000 }));
  const recent = Array.from({ length: EVENTS }, (_, at) => ({ clientId: 1 + at, dueMs: 0 }));
  const future = [{ clientId: 500, dueMs: 60_000 }];
  await addEvents([...recent, ...future, ...late]);
  await stage.publishing.takeOver("gateway_restarted");
  await until("all places are taken", () => asked().length === ANSWERED + AT_ONCE);
  expect(ascending(asked())).toEqual(late.map(({ clientId }) => clientId));
});

test("an event that its publish holds back is sent at the release, and does not block others", async () => {
  let answer: () => void = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await stage.close();
  stage = await openStage({ webhook: customer.url, ca: customer.ca, settings: { updateSeconds: 0.1 } });
  customer.answer(async ({ call }) => {
    if (call === "update_publish") await answered;
    return { status: 200 };
  });
  const name = "Ab1Cd-9XyZ0";
  const held = await stage.allowed(name);
  await customer.received("update_publish");
  stage.end(held);
  await until(
    "its end is recorded",
    async () => (await stage.db.selectFrom("outbox").selectAll().execute()).length === 1,
  );
  // This delivery was started by the same poll that had to skip the held event.
  await addEvents([{ clientId: 2_000, dueMs: 0 }]);
  await stage.publishing.takeOver("gateway_restarted");
  await customer.received("publish_done");
  await until("it is delivered", async () => {
    const rows = await stage.db.selectFrom("outbox").select(["client_id", "delivered_at"]).execute();
    return rows.some(({ client_id, delivered_at }) => Number(client_id) === 2_000 && delivered_at !== null);
  });
  expect(asked()).toEqual([2_000]);
  answer();
  await customer.received("publish_done", 2);
  expect(asked()).toEqual([2_000, held]);
});

test("free places are used immediately, and a stop sends everything that is due", async () => {
  // More than there are places, and few enough for a stop's five seconds on a busy machine.
  const dueAtStop = 40;
  await addEvents(Array.from({ length: EVENTS }, (_, at) => ({ clientId: 1 + at, dueMs: 0 })));
  await stage.publishing.takeOver("gateway_restarted");
  await until("all have gone", () => asked().length === EVENTS);
  await addEvents(Array.from({ length: dueAtStop }, (_, at) => ({ clientId: 1_001 + at, dueMs: 0 })));
  await stage.publishing.stop();
  expect(new Set(asked()).size).toBe(EVENTS + dueAtStop);
  expect(asked()).toHaveLength(EVENTS + dueAtStop);
});

test("an event in flight is not sent a second time, however long its customer takes", async () => {
  customer.answer(({ body }) => (body.endsWith("clientid=0") ? { status: 200 } : "hang"));
  await addEvents([{ clientId: 0, dueMs: -1 }]);
  await addEvents([{ clientId: 1, dueMs: 0 }]);
  await stage.publishing.takeOver("gateway_restarted");
  await until("the first is in flight", () => asked().includes(1));
  stage.clock.ms += 600_000; // past the time at which it would be due again
  await addEvents([{ clientId: 2, dueMs: 0 }]);
  await stage.publishing.takeOver("gateway_restarted");
  await until("the second is sent", () => asked().includes(2));
  expect(asked()).toEqual([0, 1, 2]);
});

test.each([
  ["while the service runs", true],
  ["while it was down", false],
])("an event waits no longer because the clock was set back %s", async (_, isRunning) => {
  if (isRunning) await stage.publishing.takeOver("gateway_restarted");
  await addEvents([{ clientId: 1, dueMs: 30_000 }]);
  stage.clock.ms -= 3_600_000;
  await stage.publishing.takeOver("gateway_restarted");
  await addEvents([{ clientId: 2, dueMs: 0 }]);
  await stage.publishing.takeOver("gateway_restarted");
  await customer.received("publish_done");
  expect(asked()).toEqual([2]);
  stage.clock.ms += 30_000;
  await stage.publishing.takeOver("gateway_restarted");
  await customer.received("publish_done", 2);
  expect(asked()).toEqual([2, 1]);
});
