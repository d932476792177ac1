// The size of the delivery log on both stores: new entries replace the oldest.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { listDeliveries } from "../../../ts/publish/webhook/delivery-list.ts";
import { createDeliveryLog, type DeliveryLog } from "../../../ts/publish/webhook/delivery-log.ts";
import { KeptResponse } from "../../../ts/publish/webhook/kept-response.ts";
import type { Store } from "../../../ts/store/open.ts";
import type { Schema } from "../../../ts/store/schema.ts";
import { until } from "../../support/child.ts";
import { openTestStore } from "../../support/stores.ts";
import { webhookCallOf } from "../../support/webhook-call.ts";

/** A publish call, answered or never sent. */
const callOf = (clientId: number, organisationId = "org") => webhookCallOf(clientId, organisationId);
const ANSWER = { outcome: "answered", status: 200, reason: null, retryAfter: null } as const;

const clock = { ms: 0, now: () => clock.ms };
const NEVER_TOO_MUCH = 1_000_000_000;

let folder: string;
let store: Store;
let db: Kysely<Schema>;
const open: DeliveryLog[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-log-"));
  store = await openTestStore(folder);
  db = store.db;
  const organisation = { plan: "paid", enabled: 1, webhook: null, created_at: 0, updated_at: 0 } as const;
  await db
    .insertInto("organisation")
    .values(["org", "other"].map((id) => ({ ...organisation, id, hash: id, name: id })))
    .execute();
});
afterEach(async () => {
  for (const deliveries of open.splice(0)) await deliveries.stop();
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

function openLog(sizeLimitBytes: number, organisationLimitBytes = NEVER_TOO_MUCH): DeliveryLog {
  const limits = { sizeLimitBytes, organisationLimitBytes };
  const deliveries = createDeliveryLog({ db, clock, log: pino({ level: "silent" }), ...limits });
  open.push(deliveries);
  return deliveries;
}

/** Answered calls with these client ids, a millisecond apart. */
async function write(
  deliveries: DeliveryLog,
  from: number,
  to: number,
  { body = "call=publish", organisation = "org" } = {},
): Promise<void> {
  for (let clientId = from; clientId < to; clientId += 1) {
    clock.ms += 1;
    deliveries.note({ ...callOf(clientId, organisation), body: Buffer.from(body) }, ANSWER, 3);
  }
  await deliveries.flush();
}

const rows = () => db.selectFrom("delivery").select(["client_id", "outcome", "bytes"]).orderBy("client_id").execute();
const sum = async () => (await rows()).reduce((bytes, row) => bytes + Number(row.bytes), 0);
const counted = async () =>
  Number((await db.selectFrom("delivery_size").select("bytes").executeTakeFirstOrThrow()).bytes);
/** By organisation, as the store counts them, and as the rows say. */
const shares = async () => {
  const counts = await db.selectFrom("delivery_share").selectAll().where("bytes", ">", 0).execute();
  return new Map(counts.map((share) => [share.organisation_id, Number(share.bytes)]));
};
const sums = async () => {
  const total = db.selectFrom("delivery").select(["organisation_id", (eb) => eb.fn.sum<number>("bytes").as("bytes")]);
  const rows = await total.groupBy("organisation_id").execute();
  return new Map(rows.map((row) => [row.organisation_id, Number(row.bytes)]));
};

test("new entries replace the oldest once the log is full", async () => {
  const deliveries = openLog(50_000);
  for (let at = 0; at < 300; at += 50) {
    await write(deliveries, at, at + 50);
    expect(await sum()).toBeLessThanOrEqual(50_000);
  }
  const kept = await rows();
  expect(kept.at(-1)?.client_id).toBe(299);
  expect(kept.length).toBeGreaterThan(70);
  expect(kept.map(({ client_id }) => Number(client_id))).toEqual(kept.map((_, at) => 300 - kept.length + at));
});

test("an organisation that fills the log loses its own calls, and not another's", async () => {
  const deliveries = openLog(50_000);
  await write(deliveries, 0, 10, { organisation: "other" });
  for (let at = 1_000; at < 2_250; at += 50) await write(deliveries, at, at + 50);
  const kept = await rows();
  expect(await sum()).toBeLessThanOrEqual(50_000);
  expect(kept.filter(({ client_id }) => client_id < 10)).toHaveLength(10);
  expect(kept.at(-1)?.client_id).toBe(2_249);
});

test("one organisation has at most its own part of the log", async () => {
  const deliveries = openLog(NEVER_TOO_MUCH, 20_000);
  await write(deliveries, 0, 10, { organisation: "other" });
  for (let at = 1_000; at < 1_200; at += 50) await write(deliveries, at, at + 50);
  expect((await sums()).get("org")).toBeLessThanOrEqual(20_000);
  const kept = await rows();
  expect(kept.filter(({ client_id }) => client_id < 10)).toHaveLength(10);
  expect(kept.at(-1)?.client_id).toBe(1_199);
  await openLog(NEVER_TOO_MUCH, 3_000).prune();
  for (const bytes of (await sums()).values()) expect(bytes).toBeLessThanOrEqual(3_000);
});

test("what arrives of a response after its row was written is added to the row, and counted", async () => {
  const deliveries = openLog(NEVER_TOO_MUCH);
  const response = new KeptResponse({ server: "x" });
  const bodyOf = async () => {
    const { response: text } = await db.selectFrom("delivery").select("response").executeTakeFirstOrThrow();
    return JSON.parse(text ?? "null");
  };
  deliveries.note(callOf(1), { ...ANSWER, status: 500 }, 3, response);
  response.add(Buffer.from("no "));
  await deliveries.flush();
  expect(await bodyOf()).toMatchObject({ body: "no ", is_cut: true });
  response.add(Buffer.from("database".repeat(100)));
  response.end(true);
  await deliveries.flush();
  expect(await bodyOf()).toMatchObject({ body: `no ${"database".repeat(100)}`, is_cut: false });
  expect(await counted()).toBe(await sum());
  expect(await shares()).toEqual(await sums());
  deliveries.note({ ...callOf(1), event: { ...callOf(1).event, attempt: 2 } }, ANSWER, 3); // delivered again, unanswered
  await deliveries.flush();
  expect(await bodyOf()).toBeNull();
  expect(await counted()).toBe(await sum());
  expect(await shares()).toEqual(await sums());
});

test("a few large calls of one organisation give way to many small ones of another", async () => {
  await write(openLog(NEVER_TOO_MUCH), 0, 5, { organisation: "other", body: "call=publish&".padEnd(10_000, "x") });
  const deliveries = openLog(50_000);
  await write(deliveries, 1_000, 1_050);
  expect(await sum()).toBeLessThanOrEqual(50_000);
  expect((await rows()).filter(({ client_id }) => client_id >= 1_000)).toHaveLength(50);
});

test("large calls replace many small ones", async () => {
  const deliveries = openLog(200_000);
  await write(deliveries, 0, 400);
  await write(deliveries, 400, 450, { body: "call=publish&".padEnd(4_000, "x") });
  expect(await sum()).toBeLessThanOrEqual(200_000);
});

test("a smaller limit is applied after a while, even when nothing is written", async () => {
  await write(openLog(NEVER_TOO_MUCH), 0, 200);
  const deliveries = openLog(25_000);
  await deliveries.prune();
  expect(await sum()).toBeLessThanOrEqual(25_000);
  expect((await rows()).at(-1)?.client_id).toBe(199);
});

test("a smaller limit is applied although no organisation has many calls", async () => {
  const former = openLog(NEVER_TOO_MUCH);
  await write(former, 0, 10);
  await write(former, 10, 20, { organisation: "other" });
  await openLog(1_000).prune();
  expect(await sum()).toBeLessThanOrEqual(1_000);
});

test("the store's counts of the size are correct after inserts, replays and deletions", async () => {
  const deliveries = openLog(NEVER_TOO_MUCH);
  const expectCounted = async () => {
    expect(await counted()).toBe(await sum());
    expect(await shares()).toEqual(await sums());
  };
  await write(deliveries, 0, 60);
  await write(deliveries, 60, 90, { organisation: "other", body: "call=publish&more" });
  await expectCounted();
  await write(deliveries, 0, 30); // once more: replays change their rows
  await expectCounted();
  await db.deleteFrom("delivery").where("client_id", "<", 10).execute();
  await db.deleteFrom("delivery").where("client_id", ">", 80).execute();
  await expectCounted();
  await db.deleteFrom("delivery").execute();
  expect(await counted()).toBe(0);
  expect(await shares()).toEqual(new Map());
});

test("a transaction that is rolled back does not change the size", async () => {
  await write(openLog(NEVER_TOO_MUCH), 0, 10);
  const before = await counted();
  const undone = db.transaction().execute(async (trx) => {
    await trx.deleteFrom("delivery").execute();
    throw new Error("undone");
  });
  await expect(undone).rejects.toThrow("undone");
  expect(await counted()).toBe(before);
});

test("the delivery log records few of the calls that a customer's open breaker held back", async () => {
  const deliveries = openLog(NEVER_TOO_MUCH);
  for (let at = 0; at < 500; at += 1)
    deliveries.note(callOf(at), { outcome: "unreachable", cause: "breaker_open", detail: "not tried" }, 0);
  for (let at = 500; at < 600; at += 1) deliveries.note(callOf(at), ANSWER, 3);
  await deliveries.flush();
  const kept = await rows();
  expect(kept.filter(({ outcome }) => outcome === "breaker_open")).toHaveLength(10);
  expect(kept.filter(({ outcome }) => outcome === "answered")).toHaveLength(100);
});

test("stopping a log waits until it has finished making room", async () => {
  await write(openLog(NEVER_TOO_MUCH), 0, 200);
  const deliveries = openLog(25_000);
  let isOver = false;
  const pruned = deliveries.prune().then(() => {
    isOver = true;
  });
  await deliveries.stop();
  expect(isOver).toBe(true);
  await pruned;
});

test("calls are written every second, together", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const deliveries = openLog(NEVER_TOO_MUCH);
    for (let at = 0; at < 3; at += 1) deliveries.note(callOf(at), ANSWER, 3);
    vi.advanceTimersByTime(999);
    expect(await rows()).toEqual([]);
    vi.advanceTimersByTime(1);
    await until("they are written", async () => (await rows()).length === 3);
  } finally {
    vi.useRealTimers();
  }
});

test("of copies those count as failed that got neither a success nor 410", async () => {
  const deliveries = openLog(NEVER_TOO_MUCH);
  for (const status of [199, 200, 299, 300, 409, 410, 411, 500]) {
    deliveries.note(callOf(status), { ...ANSWER, status }, 3, null, "copies");
  }
  await deliveries.flush();
  const all = { copies: true, call: null, clientId: null, name: null, before: null, quantity: 100 };
  const { rows: failed } = await listDeliveries(db, "org", { ...all, failed: true });
  expect(failed.map(({ status }) => Number(status)).toSorted()).toEqual([199, 300, 409, 411, 500]);
});
