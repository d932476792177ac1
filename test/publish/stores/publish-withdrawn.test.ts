// The customer's answer is recorded eventually, however the store failed meanwhile: an allowed publish
// without media gets its publish_done, and a denied one none.
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { openStage, STREAM, type Stage } from "../../support/publishing.ts";

let customer: Customer;
let stage: Stage;

beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({ webhook: customer.url, ca: customer.ca, settings: { deadlineMs: 60_000 } });
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

const publishes = () => stage.db.selectFrom("publish").select(["state", "end_reason"]).execute();
const takeAway = (table: string) => sql`alter table ${sql.table(table)} rename to taken_away`.execute(stage.db);
const putBack = (table: string) => sql`alter table taken_away rename to ${sql.table(table)}`.execute(stage.db);

/** The customer's answer, given when the intent is recorded and the store has lost `table`. */
function answerWithout(table: string, status: number): void {
  customer.answer(async ({ call }) => {
    if (call === "publish") {
      await until("the intent", async () => (await publishes()).length === 1);
      await takeAway(table);
    }
    return { status: call === "publish" ? status : 200 };
  });
}

test("an allowed publish that the store cannot record is refused, and its publish_done follows when it can", async () => {
  answerWithout("stream", 200);
  expect(await stage.request(STREAM)).toMatchObject({ command: "deny", description: "Temporarily unavailable" });
  expect(customer.calls("publish_done")).toEqual([]);
  await putBack("stream");
  await customer.received("publish_done");
  expect(await publishes()).toEqual([{ state: "ended", end_reason: "internal_error" }]);
});

test("a denial that the store cannot record is recorded when it can, and gets no publish_done", async () => {
  answerWithout("publish", 403);
  await stage.request(STREAM);
  await until("the failure", () => stage.log().includes("denials could not be recorded"));
  await putBack("publish");
  await until("the denial", async () => (await publishes())[0]?.state === "denied");
  await stage.publishing.takeOver("gateway_restarted");
  expect(customer.calls("publish_done")).toEqual([]);
});
