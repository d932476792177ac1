// What becomes of a publish that admission has allowed: W12a, W20.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Allowed } from "../../ts/publish/allowed.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { openStage, STREAM, type Stage, until } from "../support/publishing.ts";

let customer: Customer;
let stage: Stage;

beforeEach(async () => {
  customer = await startCustomer();
  stage = await openStage({ webhook: customer.url, ca: customer.ca });
});
afterEach(async () => {
  await stage.close();
  await customer.close();
});

async function admitted(session = "session"): Promise<Allowed> {
  const request = { protocol: "whip", app: "live", name: Buffer.from(STREAM), arguments: null, session } as const;
  const admission = await stage.publishing.admit({ ...request, address: "203.0.113.7" });
  if (admission.outcome === "denied") throw new Error(admission.cause);
  return admission;
}

const ended = async () =>
  await until(async () => {
    const [row] = await stage.db.selectFrom("publish").select(["state", "end_reason"]).execute();
    return row?.state === "ended" && row;
  });

test("its answer is what starting it returns", async () => {
  const allowed = await admitted();
  expect(await allowed.start(() => "v=0\r\n")).toEqual({ outcome: "started", answer: "v=0\r\n" });
  expect(stage.publishing.running().map(({ clientId }) => clientId)).toEqual([allowed.publish.clientId]);
});

test("an end in the same turn as the start is recorded, and publish_done follows once", async () => {
  const allowed = await admitted();
  await allowed.start(() => {
    stage.end(allowed.publish.clientId, "broadcaster_left");
    return null;
  });
  expect(await ended()).toMatchObject({ end_reason: "broadcaster_left" });
  await customer.received("publish_done");
  expect(stage.publishing.running()).toEqual([]);
});

test("one that the media core refuses has ended", async () => {
  const allowed = await admitted();
  const started = allowed.start(() => {
    throw new Error("no worker");
  });
  expect(await started).toMatchObject({ outcome: "denied", cause: "internal_error" });
  expect(await ended()).toMatchObject({ end_reason: "internal_error" });
  await customer.received("publish_done");
});

test("one that was stopped before it started is accepted and ended", async () => {
  const allowed = await admitted();
  stage.publishing.abandon();
  const opened: string[] = [];
  const started = allowed.start(() => {
    opened.push("media");
    return null;
  });
  expect(await started).toMatchObject({ outcome: "denied", cause: "stopped" });
  expect(opened).toEqual([]);
  await customer.received("publish_done");
});

test("one that is dropped, or forgotten, is accepted and ended, and its name is free", async () => {
  await (await admitted()).drop();
  await customer.received("publish_done");
  await admitted();
  await until(() => customer.calls("publish_done").length === 2);
  expect(stage.log()).toContain("neither started nor dropped");
  const third = await admitted();
  expect(await third.start(() => null)).toMatchObject({ outcome: "started" });
});

test("it cannot be used twice", async () => {
  const allowed = await admitted();
  await allowed.start(() => null);
  await expect(allowed.start(() => null)).rejects.toThrow("before");
  await expect(allowed.drop()).rejects.toThrow("before");
});
