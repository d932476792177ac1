// From acceptance to publish_done: docs/webhook.md, decisions W7, W8, W12a, W14–W18.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { EndReason } from "../../../ts/media/codes.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { openStage, STREAM, type Stage, type StageOptions, until } from "../../support/publishing.ts";

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
const delivered = () =>
  until(async () => (await outbox()).every((row) => row.delivered_at !== null) && (await outbox()).length > 0);

describe("publish_done", () => {
  const reasons: EndReason[] = [
    "unpublished",
    "broadcaster_left",
    "silent",
    "protocol_error",
    "limit_exceeded",
    "replaced",
    "rejected_by_customer",
    "kicked",
    "shutdown",
    "internal_error",
  ];

  test.each(reasons)("is sent exactly once after the end %s", async (reason) => {
    await open();
    const clientId = await stage.allowed(STREAM, { arguments: "k=v" });
    stage.end(clientId, reason, { bytesIn: 123_456_789_012, bytesOut: 42 });
    stage.end(clientId, reason, { bytesIn: 1, bytesOut: 1 });
    expect((await customer.received("publish_done")).body).toBe(
      `k=v&call=publish_done&name=${STREAM}&bytes_in=123456789012&bytes_out=42&app=live&addr=203.0.113.7&clientid=${clientId}`,
    );
    await delivered();
    await stage.publishing.stop();
    expect(customer.calls("publish_done")).toHaveLength(1);
    const row = await stage.db.selectFrom("publish").selectAll().executeTakeFirstOrThrow();
    expect(row).toMatchObject({ state: "ended", end_reason: reason, bytes_in: 123_456_789_012, bytes_out: 42 });
    expect((await stage.db.selectFrom("stream").selectAll().executeTakeFirstOrThrow()).state).toBe("ended");
  });

  test("is never sent for a denied publish", async () => {
    await open();
    customer.answer({ status: 403 });
    await stage.request(STREAM);
    await until(async () => (await stage.db.selectFrom("publish").selectAll().execute())[0]?.state === "denied");
    stage = await stage.crash();
    await stage.publishing.takeOver("gateway_restarted");
    await stage.publishing.stop();
    expect(await outbox()).toEqual([]);
  });

  test("follows when the broadcaster left while the customer was asked", async () => {
    await open();
    let answer: () => void = () => {};
    customer.answer(async () => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return { status: 200 };
    });
    const request = stage.ask(STREAM);
    await customer.received("publish");
    answer(); // the broadcaster has left by now; the gateway learns it from the end that follows allow
    customer.answer({ status: 200 });
    const told = await stage.answered(request);
    if (told.command !== "allow") throw new Error("not allowed");
    stage.end(told.clientId, "broadcaster_left");
    const done = await customer.received("publish_done");
    expect(new URLSearchParams(done.body).get("clientid")).toBe(String(told.clientId));
  });

  test("follows when the stream is locked while the customer is asked", async () => {
    await open();
    customer.answer(async () => {
      await stage.db.updateTable("stream").set({ state: "locked" }).execute();
      return { status: 200 };
    });
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "bad_name" });
    await customer.received("publish_done");
    expect((await stage.db.selectFrom("stream").selectAll().executeTakeFirstOrThrow()).state).toBe("locked");
  });

  test("follows when the media core fails to start an accepted publish", async () => {
    await open();
    stage.media.allowThrows = true;
    stage.ask(STREAM);
    expect((await customer.received("publish_done")).body).toContain("bytes_in=0&bytes_out=0");
  });

  test("follows a crash of the gateway while live, with the last persisted bytes", async () => {
    await open();
    const clientId = await stage.allowed(STREAM, { arguments: Buffer.from([0x61, 0x3d, 0xe9]) });
    await stage.db.updateTable("publish").set({ bytes_in: 77, bytes_out: 88 }).execute();
    stage = await stage.crash();
    await stage.publishing.takeOver("gateway_restarted");
    expect((await customer.received("publish_done")).body).toBe(
      `a=\xe9&call=publish_done&name=${STREAM}&bytes_in=77&bytes_out=88&app=live&addr=203.0.113.7&clientid=${clientId}`,
    );
    await delivered();
    await stage.publishing.takeOver("gateway_restarted");
    await stage.publishing.stop();
    expect(customer.calls("publish_done")).toHaveLength(1);
    expect((await stage.db.selectFrom("stream").selectAll().executeTakeFirstOrThrow()).state).toBe("ended");
  });

  test("follows a crash while the customer was asked", async () => {
    await open();
    customer.answer("hang");
    stage.ask(STREAM);
    await customer.received("publish");
    await until(async () => (await stage.db.selectFrom("publish").selectAll().execute()).length === 1);
    stage = await stage.crash();
    customer.answer({ status: 200 });
    await stage.publishing.takeOver("gateway_restarted");
    expect((await customer.received("publish_done")).body).toContain("bytes_in=0&bytes_out=0");
  });

  test("follows a crash between the end and its delivery", async () => {
    await open();
    customer.answer((request) => (request.call === "publish" ? { status: 200 } : "hang"));
    stage.end(await stage.allowed(STREAM));
    const lost = await customer.received("publish_done");
    stage = await stage.crash();
    customer.answer({ status: 200 });
    stage.clock.ms += 60_000;
    await stage.publishing.takeOver("gateway_restarted");
    const again = await customer.received("publish_done", 2);
    expect(again.body).toBe(lost.body);
    expect(again.headers["webhook-id"]).toBe(lost.headers["webhook-id"]);
    await delivered();
  });

  test("is tried again after 500 with the same id and body", async () => {
    await open();
    customer.answer((request) => ({ status: request.call === "publish" ? 200 : 500 }));
    stage.end(await stage.allowed(STREAM, { arguments: "a=b" }), "unpublished", { bytesIn: 5, bytesOut: 6 });
    const first = await customer.received("publish_done");
    const [row] = await until(async () => {
      const rows = await outbox();
      return rows[0]?.last_status === 500 && rows;
    });
    expect(row).toMatchObject({ attempts: 1, delivered_at: null });
    expect(Number(row?.next_attempt_at) - stage.clock.ms).toBeGreaterThanOrEqual(900);
    expect(Number(row?.next_attempt_at) - stage.clock.ms).toBeLessThanOrEqual(1_100);
    customer.answer({ status: 204 });
    stage.clock.ms += 1_200;
    const second = await customer.received("publish_done", 2);
    expect(second.body).toBe(first.body);
    expect(second.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
    await delivered();
    expect(await outbox()).toMatchObject([{ attempts: 2, last_status: 204 }]);
  });

  test("of a customer that hangs does not delay another's", async () => {
    await open();
    const slow = await startCustomer();
    slow.answer("hang");
    await stage.db
      .insertInto("organisation")
      .values({
        id: "org2",
        hash: "Zz9Zz",
        name: "Slow",
        plan: "paid",
        enabled: 1,
        webhook: null,
        created_at: 0,
        updated_at: 0,
      })
      .execute();
    const row = {
      organisation_id: "org2",
      url: slow.url,
      body: "call=publish_done",
      next_attempt_at: 0,
      created_at: 0,
      delivered_at: null,
      given_up_at: null,
      last_status: null,
      epoch: 1,
    };
    const rows = Array.from({ length: 40 }, (_, index) => ({ ...row, id: `slow${index}`, client_id: 10_000 + index }));
    await stage.db.insertInto("outbox").values(rows).execute();
    await stage.publishing.takeOver("gateway_restarted");
    stage.end(await stage.allowed(STREAM));
    await customer.received("publish_done");
    await until(() => slow.requests.length > 0);
    expect(slow.requests.length).toBeLessThanOrEqual(32);
    await slow.close();
  });
});

describe("every ten seconds", () => {
  const open10 = async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    return await open();
  };

  test("the counters of running publishes are persisted", async () => {
    await open10();
    const clientId = await stage.allowed(STREAM);
    stage.media.measure(clientId, { bytesIn: 1_000, bytesOut: 2_000 });
    vi.advanceTimersByTime(10_000);
    const row = () => stage.db.selectFrom("publish").select(["bytes_in", "bytes_out"]).executeTakeFirstOrThrow();
    await expect.poll(row).toEqual({ bytes_in: 1_000, bytes_out: 2_000 });
  });

  test("a failing transcoder is logged once per publish", async () => {
    await open10();
    const clientId = await stage.allowed(STREAM);
    const warnings = () =>
      stage
        .log()
        .split("\n")
        .filter((line) => line.includes("cannot be transcoded"));
    for (const transcoderError of [
      null,
      "no AAC encoder could be made",
      "no AAC encoder could be made",
      null,
      "again",
    ]) {
      stage.media.measure(clientId, { transcoderError });
      vi.advanceTimersByTime(10_000);
    }
    expect(warnings()).toHaveLength(1);
    expect(JSON.parse(warnings()[0] ?? "")).toMatchObject({
      level: 40,
      clientId,
      reason: "no AAC encoder could be made",
      msg: "audio cannot be transcoded to AAC",
    });
    stage.end(clientId);
    await customer.received("publish_done");
    const next = await stage.allowed(STREAM);
    stage.media.measure(next, { transcoderError: "no AAC encoder could be made" });
    vi.advanceTimersByTime(10_000);
    expect(warnings()).toHaveLength(2);
  });

  test("an end that the store could not record is tried again", async () => {
    await open10();
    const clientId = await stage.allowed(STREAM);
    await stage.db.schema.alterTable("outbox").renameTo("elsewhere").execute();
    stage.end(clientId, "unpublished", { bytesIn: 3, bytesOut: 4 });
    await until(() => stage.log().includes("could not be recorded yet"));
    expect((await stage.db.selectFrom("publish").select("state").executeTakeFirstOrThrow()).state).toBe("live");
    await stage.db.schema.alterTable("elsewhere").renameTo("outbox").execute();
    vi.advanceTimersByTime(10_000);
    expect((await customer.received("publish_done")).body).toContain("bytes_in=3&bytes_out=4");
  });
});

describe("stopping", () => {
  test("delivers the ends that the media core reported", async () => {
    await open();
    const clientId = await stage.allowed(STREAM);
    stage.end(clientId, "shutdown");
    await stage.publishing.stop();
    expect(customer.calls("publish_done")).toHaveLength(1);
    expect(await outbox()).toMatchObject([{ last_status: 200 }]);
  });

  test("ends in time although the customer hangs, and the event stays in the store", async () => {
    await open({ settings: { deadlineMs: 10_000 } });
    customer.answer((request) => (request.call === "publish" ? { status: 200 } : "hang"));
    stage.end(await stage.allowed(STREAM), "shutdown");
    const startedAt = performance.now();
    await stage.publishing.stop();
    expect(performance.now() - startedAt).toBeLessThan(7_000);
    expect(await outbox()).toMatchObject([{ delivered_at: null, given_up_at: null }]);
  }, 15_000);

  test("denies further publish requests", async () => {
    await open();
    await stage.publishing.stop();
    expect(await stage.request(STREAM)).toMatchObject({ command: "deny", code: "denied" });
  });
});
