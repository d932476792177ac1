// The webhook settings of an organisation: W3, W12, W15, W16, W26, and additional fields in updates.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Customer, type CustomerAnswer, startCustomer } from "../../support/customer.ts";
import { openStage, STREAM, type Stage, type StageOptions, until } from "../../support/publishing.ts";

let customer: Customer;
let stage: Stage;

async function open(settings: Parameters<Stage["change"]>[0], options: Partial<StageOptions["settings"]> = {}) {
  stage = await openStage({ webhook: customer.url, ca: customer.ca, settings: { updateSeconds: 0.05, ...options } });
  await stage.change(settings);
}

beforeEach(async () => {
  customer = await startCustomer();
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

const ends = () => stage.media.commands.filter((each) => each.command === "end");
const ended = () => until(() => ends()[0]);
/** Answers 200 to publish, and with `answers` to updates, in order; then 200. */
function answerUpdates(...answers: CustomerAnswer[]): void {
  customer.answer((request) =>
    request.call === "update_publish" ? (answers.shift() ?? { status: 200 }) : { status: 200 },
  );
}

describe("a publish whose customer gives no usable answer", () => {
  test.each(["hang", "reset"] as const)("is allowed by the organisation's setting (%s)", async (answer) => {
    await open({ publish_on_hook_unreachable: "allow" }, { deadlineMs: 500 });
    customer.answer(answer);
    const clientId = await stage.allowed(STREAM, { arguments: "a=b" });
    customer.answer({ status: 200 });
    stage.end(clientId);
    expect((await customer.received("publish_done")).body).toContain(`clientid=${clientId}`);
  });

  test("is denied nevertheless by an answer that is not 200", async () => {
    await open({ publish_on_hook_unreachable: "allow" });
    customer.answer({ status: 503 });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "denied" });
  });
});

describe("updates that are rejected", () => {
  test("end the publish only after the configured number in a row", async () => {
    await open({ update_reject_after: 3 });
    answerUpdates({ status: 500 }, { status: 404 }, { status: 200 }, { status: 500 }, { status: 500 }, { status: 204 });
    await stage.allowed(STREAM);
    await ended();
    expect(customer.calls("update_publish")).toHaveLength(6);
  });

  test("end it immediately with 403", async () => {
    await open({ update_reject_after: 3 });
    answerUpdates({ status: 403 });
    await stage.allowed(STREAM);
    expect(await ended()).toMatchObject({ reason: "rejected_by_customer" });
    expect(customer.calls("update_publish")).toHaveLength(1);
  });
});

describe("updates without an answer", () => {
  test("end the publish after the configured number in a row", async () => {
    await open({ update_max_unreachable: 3 });
    // The first one on a kept connection is sent twice (W13).
    answerUpdates("reset", "reset", "reset", { status: 200 }, "reset", "reset", "reset", "reset");
    const clientId = await stage.allowed(STREAM);
    expect(await ended()).toMatchObject({ description: "The customer could not be reached" });
    expect(customer.calls("update_publish")).toHaveLength(8);
    stage.end(clientId, "rejected_by_customer");
    await customer.received("publish_done");
    // The customer has rejected nothing.
    const publish = stage.db.selectFrom("publish").select("end_reason").where("client_id", "=", clientId);
    expect(await publish.execute()).toEqual([{ end_reason: "customer_unreachable" }]);
  });

  test("have no effect otherwise", async () => {
    await open({});
    answerUpdates("reset", "reset", "reset", "reset", { status: 200 });
    await stage.allowed(STREAM);
    await customer.received("update_publish", 6);
    expect(ends()).toEqual([]);
  });
});

describe("the customer's reason", () => {
  const reason: CustomerAnswer = { status: 403, headers: { "content-type": "text/plain" }, body: "Plan expired" };

  test("is not forwarded when the organisation disables that", async () => {
    await open({ reason_to_broadcaster: false });
    customer.answer(reason);
    expect(await stage.request(STREAM)).toMatchObject({ description: "Publish denied" });
    answerUpdates(reason);
    await stage.allowed(STREAM);
    expect(await ended()).toMatchObject({ description: "Publish ended by the customer" });
    expect((await stage.publishing.workbench.list("org1", everything)).deliveries).toContainEqual(
      expect.objectContaining({ call: "publish", reason: "Plan expired" }),
    );
  });
});

const everything = {
  copies: false,
  call: null,
  clientId: null,
  name: null,
  failed: false,
  before: null,
  quantity: 500,
};

test("time and timestamp in custom arguments are refused with strict arguments", async () => {
  await open({ strict_arguments: true });
  const refused = await stage.request(STREAM, { arguments: "sig=x&time=1" });
  expect(refused).toMatchObject({ command: "deny", code: "bad_name", description: /time/ });
  expect(customer.requests).toHaveLength(0);
});

describe("an update", () => {
  test("contains the configured fields, after the documented ones", async () => {
    await open({ update_fields: ["bytes_in", "bitrate", "dropped_frames", "rtt"] });
    const clientId = await stage.allowed(STREAM);
    stage.media.measure(clientId, { bytesIn: 500_000, droppedFrames: 2 });
    const request = await until(() => customer.calls("update_publish")[0]);
    expect(request.body).toMatch(
      /^call=update_publish&time=\d+&timestamp=0&name=.*&clientid=\d+&bytes_in=500000&bitrate=[1-9]\d*&dropped_frames=2$/,
    );
    expect(await stage.request(STREAM, { arguments: "bitrate=1" })).toMatchObject({
      command: "deny",
      code: "bad_name",
    });
  });
});

describe("the delivery log", () => {
  test("keeps publish, publish_done, failures, and the latest good update of a publish", async () => {
    await open({ update_reject_after: 9 });
    answerUpdates({ status: 200 }, { status: 500 }, { status: 200 }, { status: 200 });
    const clientId = await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
    await customer.received("update_publish", 4);
    stage.end(clientId, "unpublished", { bytesIn: 5, bytesOut: 6 });
    await customer.received("publish_done");
    const found = await until(async () => {
      const { deliveries: list } = await stage.publishing.workbench.list("org1", everything);
      return list.some(({ call }) => call === "publish_done") && list;
    });
    const count = (call: string, status: number) =>
      found.filter((entry) => entry.call === call && entry.status === status).length;
    expect([count("publish", 200), count("publish_done", 200), count("update_publish", 500)]).toEqual([1, 1, 1]);
    expect(count("update_publish", 200)).toBe(1);
    expect(found.every((entry) => entry.clientId === clientId)).toBe(true);
    expect(JSON.stringify(found)).not.toContain("s3cret");
  });

  test("shows a publish_done that a replay delivered as delivered", async () => {
    await open({});
    customer.answer((request) => ({ status: request.call === "publish_done" ? 503 : 200 }));
    stage.end(await stage.allowed(STREAM));
    await customer.received("publish_done");
    const [failed] = await until(async () => {
      const { deliveries: list } = await stage.publishing.workbench.list("org1", { ...everything, failed: true });
      return list.length === 1 && list;
    });
    customer.answer({ status: 200 });
    const { answer } = await stage.publishing.workbench.replay("org1", failed?.id ?? "", async () => {});
    expect(answer).toMatchObject({ outcome: "answered", status: 200 });
    const [row] = await stage.db.selectFrom("outbox").selectAll().execute();
    expect(row).toMatchObject({ id: failed?.id, last_status: 200 });
    expect(row?.delivered_at).not.toBeNull();
  });

  test("need not contain a publish_done for it to be replayed", async () => {
    await open({});
    customer.answer((request) => ({ status: request.call === "publish_done" ? 503 : 200 }));
    stage.end(await stage.allowed(STREAM, { arguments: "passcode=s3cret" }));
    const { body: sent } = await customer.received("publish_done");
    const { workbench } = stage.publishing;
    const [failed] = await until(async () => {
      const { deliveries: list } = await workbench.list("org1", { ...everything, failed: true });
      return list.length === 1 && list;
    });
    const id = failed?.id ?? "";
    const event = () => stage.db.selectFrom("outbox").selectAll().executeTakeFirstOrThrow();
    await until(async () => (await event()).last_status === 503);
    await stage.db.updateTable("outbox").set({ given_up_at: stage.clock.ms }).execute();
    await stage.db.deleteFrom("delivery").execute();
    customer.answer({ status: 200 });
    await expect(workbench.replay("org2", id, async () => {})).rejects.toMatchObject({ code: "unknown_delivery" });
    await workbench.replay("org1", id, async () => {});
    expect(customer.calls("publish_done").at(-1)?.body).toBe(sent);
    expect(await workbench.find("org1", id)).toMatchObject({ call: "publish_done", name: STREAM, status: 200 });
    expect(await event()).toMatchObject({ given_up_at: null, last_status: 200, delivered_at: stage.clock.ms });
  });
});

test("the metrics contain calls, denials, the outbox and open breakers", async () => {
  await open({}, { deadlineMs: 300 });
  customer.answer("hang");
  await Promise.all(
    Array.from({ length: 10 }, () => stage.publishing.workbench.test("org1", "webhook", null)), // ten time-outs open the breaker
  );
  expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
  const text = await stage.metrics.registry.metrics();
  expect(text).toContain('headgate_webhook_calls_total{call="publish",outcome="deadline"} 10');
  expect(text).toContain('headgate_webhook_calls_total{call="publish",outcome="breaker_open"} 1');
  expect(text).toContain('headgate_publish_denied_total{cause="customer_unreachable"} 1');
  expect(text).toContain('headgate_webhook_breaker_open{organisation="org1"} 1');
  expect(text).toMatch(/^headgate_outbox_events 0$/m);
  expect(text).toMatch(/^headgate_webhook_in_flight 0$/m);
  expect(text).toContain('headgate_webhook_seconds_bucket{le="0.3",call="publish"}');
});

test("an answer that takes more than 300 ms allows nevertheless, and is in the log and in the metrics", async () => {
  await open({});
  customer.answer({ status: 200, afterMs: 350 });
  await stage.allowed(STREAM, { arguments: "passcode=s3cret" });
  expect(stage.log()).toMatch(/"level":40,.*"host":"localhost:\d+","tookMs":\d{3,},"msg":"webhook answered slowly"/);
  expect(await stage.metrics.registry.metrics()).toContain('headgate_webhook_slow_total{call="publish"} 1');
});
