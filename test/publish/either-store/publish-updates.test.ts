// update_publish: when it is sent, what its answers do, and what follows the end of a publish.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, type StageOptions, until } from "../../support/publishing.ts";

let customer: Customer;
let stage: Stage;

async function open(options: Partial<StageOptions> = {}): Promise<Stage> {
  stage = await openStage({ webhook: customer.url, ca: customer.ca, ...options });
  return stage;
}

beforeEach(async () => {
  customer = await startCustomer();
});
afterEach(async () => {
  vi.useRealTimers();
  await stage.close();
  await customer.close();
});

const outbox = () => stage.db.selectFrom("outbox").selectAll().execute();

describe("update_publish", () => {
  const fast = { settings: { updateSeconds: 0.1 } };
  const OTHER = "Ab1Cd-00002";
  const updatesOf = (name: string) => customer.calls("update_publish").filter(({ body }) => body.includes(name));
  /** Two more updates of another publish have arrived, or the test is over. */
  const twoIntervals = async (isOver = () => false) => {
    const before = updatesOf(OTHER).length;
    await until(() => isOver() || updatesOf(OTHER).length >= before + 2);
  };

  test("without an answer yet does not block the name for the next publish", async () => {
    await open({ settings: { updateSeconds: 0.1, deadlineMs: 20_000 } });
    customer.answer(({ call }) => (call === "update_publish" ? "hang" : { status: 200 }));
    const clientId = await stage.allowed(STREAM);
    await customer.received("update_publish");
    stage.end(clientId);
    await stage.allowed(STREAM);
    expect(customer.calls("publish_done")).toEqual([]); // it waits for the update's answer
    customer.answer({ status: 200 });
  });

  test("is sent repeatedly with time and timestamp, never two at a time", async () => {
    await open(fast);
    let inFlight = 0;
    let most = 0;
    let isOver = false;
    customer.answer(async ({ body }) => {
      if (!body.includes(STREAM)) return { status: 200 };
      inFlight += 1;
      most = Math.max(most, inFlight);
      await twoIntervals(() => isOver);
      inFlight -= 1;
      return { status: 200 };
    });
    await addStream(stage.db, OTHER, "created");
    await stage.allowed(OTHER);
    const clientId = await stage.allowed(STREAM, { arguments: "k=v" });
    stage.media.measure(clientId, { timestampMs: 4_294_967_300_000.7 });
    stage.clock.ms += 3_600_000; // a clock that is set makes no publish older
    const first = await until(() => updatesOf(STREAM)[0]);
    expect(first.body.replace(/time=\d{1,2}&/, "time=0&")).toBe(
      `k=v&call=update_publish&time=0&timestamp=4294967300000&name=${STREAM}&app=live&addr=203.0.113.7&clientid=${clientId}`,
    );
    const third = await until(() => updatesOf(STREAM)[2]);
    isOver = true;
    expect(third.headers["webhook-id"]).not.toBe(first.headers["webhook-id"]);
    expect(most).toBe(1);
  });

  test.each([403, 404, 204, 302, 500])("answered %i ends the publish", async (status) => {
    await open(fast);
    customer.answer((request) => ({
      status: request.call === "update_publish" ? status : 200,
      headers: { "content-type": "text/plain" },
      body: status === 403 ? "Time is up" : "",
    }));
    const clientId = await stage.allowed(STREAM);
    await expect
      .poll(() => stage.media.commands.find((each) => each.command === "end"), { timeout: 3_000 })
      .toEqual({
        command: "end",
        clientId,
        reason: "rejected_by_customer",
        description: status === 403 ? "Time is up" : "Publish ended by the customer",
      });
    stage.end(clientId, "rejected_by_customer");
    await customer.received("publish_done");
    expect(customer.calls("update_publish")).toHaveLength(1);
  });

  test("without an answer does not end the publish and is sent again", async () => {
    await open({ settings: { updateSeconds: 0.1, deadlineMs: 200 } });
    customer.answer((request) => (request.call === "publish" ? { status: 200 } : "hang"));
    await stage.allowed(STREAM);
    await customer.received("update_publish", 1);
    customer.answer("reset");
    await customer.received("update_publish", 2);
    customer.answer({ status: 200 });
    await customer.received("update_publish", 4);
    expect(stage.media.commands.some((each) => each.command === "end")).toBe(false);
  });

  test("in flight delays publish_done", async () => {
    await open(fast);
    let answer: () => void = () => {};
    customer.answer(async (request) => {
      if (request.call !== "update_publish") return { status: 200 };
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return { status: 200 };
    });
    const clientId = await stage.allowed(STREAM);
    await customer.received("update_publish");
    stage.end(clientId);
    await until(async () => (await outbox()).length === 1);
    stage.end(999, "silent"); // wakes the outbox
    await until(() => stage.log().includes('"clientId":999'));
    await until(async () => (await outbox()).length === 1);
    expect(customer.calls("publish_done")).toHaveLength(0);
    answer();
    await customer.received("publish_done");
    expect(customer.requests.map((request) => request.call)).toEqual(["publish", "update_publish", "publish_done"]);
  });

  test("is not sent after the end", async () => {
    await open(fast);
    const clientId = await stage.allowed(STREAM);
    await customer.received("update_publish");
    await addStream(stage.db, OTHER, "created");
    await stage.allowed(OTHER);
    stage.end(clientId);
    await customer.received("publish_done");
    await twoIntervals();
    const ofPublish = customer.requests.filter(({ body }) => body.includes(STREAM));
    expect(ofPublish.at(-1)?.call).toBe("publish_done");
  });
});
