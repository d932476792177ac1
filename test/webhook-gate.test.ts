// The gate of a customer (W25): places, the queue, the breaker; and the size of the delivery log.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { CustomerGate, IN_FLIGHT_LIMIT, OPEN_AFTER, PROBE_EVERY_MS } from "../ts/publish/customer-gate.ts";
import { Deadline } from "../ts/publish/deadline.ts";
import { createDeliveryLog } from "../ts/publish/delivery-log.ts";
import type { WebhookCall } from "../ts/publish/webhook.ts";
import { openStore } from "../ts/store/open.ts";

/** Times out within the test only when it is made to. */
const patient = () => new Deadline(60_000);

async function full(): Promise<CustomerGate> {
  const gate = new CustomerGate();
  for (let taken = 0; taken < IN_FLIGHT_LIMIT; taken += 1) expect(await gate.enter(0, patient())).toBe("entered");
  return gate;
}

test("the figures are those of W25", () => {
  expect({ IN_FLIGHT_LIMIT, OPEN_AFTER, PROBE_EVERY_MS }).toEqual({
    IN_FLIGHT_LIMIT: 100,
    OPEN_AFTER: 10,
    PROBE_EVERY_MS: 5_000,
  });
});

describe("a gate", () => {
  test("lets a hundred calls in, and the next ones in their order as places become free", async () => {
    const gate = await full();
    const order: string[] = [];
    const waiting = ["first", "second"].map(async (name) => {
      const entry = await gate.enter(0, patient());
      order.push(`${name} ${entry}`);
    });
    expect(gate.waiting).toBe(2);
    gate.leave(false, 1);
    gate.leave(false, 2);
    await Promise.all(waiting);
    expect(order).toEqual(["first entered", "second entered"]);
    expect(gate.inFlight).toBe(IN_FLIGHT_LIMIT);
  });

  test("lets nobody wait longer than the own deadline", async () => {
    const gate = await full();
    expect(await gate.enter(0, new Deadline(5))).toBe("deadline");
    expect(gate.waiting).toBe(0);
  });

  test("refuses at once when two thousand wait", async () => {
    const gate = await full();
    for (let at = 0; at < 2_000; at += 1) void gate.enter(0, patient());
    expect(await gate.enter(0, patient())).toBe("no_place");
  });

  test("closes after ten time-outs in a row, to those who wait too", async () => {
    const gate = await full();
    const waiting = gate.enter(0, patient());
    for (let late = 1; late < OPEN_AFTER; late += 1) gate.leave(true, 100);
    expect(await waiting).toBe("entered");
    const next = await Promise.all([gate.enter(100, patient()), gate.enter(100, patient())]);
    expect(next).toEqual(["entered", "entered"]);
    gate.leave(true, 100);
    expect(gate.isOpen).toBe(true);
    expect(await gate.enter(101, patient())).toBe("breaker_open");
  });

  test("turns all away who wait when it closes, a few in a turn of the event loop", async () => {
    const gate = await full();
    let turnedAway = 0;
    const waiting = Array.from({ length: 1_000 }, async () => {
      const entry = await gate.enter(0, patient());
      if (entry === "breaker_open") turnedAway += 1;
    });
    for (let late = 1; late <= OPEN_AFTER; late += 1) gate.leave(true, 100);
    await new Promise((resolve) => setImmediate(resolve));
    expect(turnedAway).toBeLessThan(100);
    await Promise.all(waiting);
    expect(turnedAway).toBe(1_000 - OPEN_AFTER + 1);
    expect(gate.waiting).toBe(0);
  });

  test("forgets time-outs when an answer comes between", async () => {
    const gate = await full();
    for (let late = 1; late < OPEN_AFTER; late += 1) gate.leave(true, 100);
    gate.leave(false, 100);
    for (let late = 1; late < OPEN_AFTER; late += 1) gate.leave(true, 100);
    expect(gate.isOpen).toBe(false);
  });

  test("lets one probe through every five seconds, and opens again with its first answer", async () => {
    const gate = await full();
    for (let late = 0; late < IN_FLIGHT_LIMIT; late += 1) gate.leave(true, 100);
    expect(await gate.enter(100 + PROBE_EVERY_MS - 1, patient())).toBe("breaker_open");
    const probeAt = 100 + PROBE_EVERY_MS;
    expect(await gate.enter(probeAt, patient())).toBe("entered");
    expect(await gate.enter(probeAt + 1, patient())).toBe("breaker_open");
    gate.leave(true, probeAt + 5);
    expect(gate.isOpen).toBe(true);
    expect(await gate.enter(probeAt + PROBE_EVERY_MS, patient())).toBe("entered");
    gate.leave(false, probeAt + PROBE_EVERY_MS + 5);
    expect(gate.isOpen).toBe(false);
    expect(gate.isIdle).toBe(true);
  });
});

/** One answered, or never let out, publish call of the organisation `org`. */
const callOf = (clientId: number): WebhookCall => ({
  organisationId: "org",
  url: "https://customer.example/",
  id: `msg_${clientId}`,
  body: Buffer.from("call=publish"),
  keys: [],
  deadlineMs: 1,
  retryConnection: false,
  event: { call: "publish", clientId, name: "n", attempt: 1 },
});
const ANSWER = { outcome: "answered", status: 200, reason: null, retryAfter: null } as const;

async function openLog(sizeLimitBytes: number) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-log-"));
  const { db, close } = await openStore({ dataDir: folder, databaseUrl: null });
  const clock = { ms: 0, now: () => clock.ms };
  const organisation = { id: "org", hash: "Ab1Cd", name: "Org", plan: "paid", enabled: 1, webhook: null } as const;
  await db
    .insertInto("organisation")
    .values({ ...organisation, created_at: 0, updated_at: 0 })
    .execute();
  const deliveries = createDeliveryLog({ db, clock, log: pino({ level: "silent" }), sizeLimitBytes });
  return {
    deliveries,
    clock,
    rows: () => db.selectFrom("delivery").select(["client_id", "outcome", "bytes"]).orderBy("client_id").execute(),
    async close() {
      await deliveries.stop();
      await close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test("the delivery log forgets its oldest tenth when it is too large", async () => {
  const { deliveries, clock, rows, close } = await openLog(25_000);
  for (let at = 0; at < 100; at += 1) {
    clock.ms += 1;
    deliveries.note(callOf(at), ANSWER, 3);
  }
  await deliveries.flush();
  await deliveries.prune();
  const kept = await rows();
  expect(kept.reduce((sum, row) => sum + Number(row.bytes), 0)).toBeLessThanOrEqual(25_000);
  expect(kept.at(-1)?.client_id).toBe(99);
  expect(kept.length).toBeGreaterThan(40);
  await close();
});

test("the delivery log takes few of the calls that a customer's open breaker did not let out", async () => {
  const { deliveries, rows, close } = await openLog(1_000_000);
  for (let at = 0; at < 500; at += 1)
    deliveries.note(callOf(at), { outcome: "unreachable", cause: "breaker_open", detail: "not tried" }, 0);
  for (let at = 500; at < 600; at += 1) deliveries.note(callOf(at), ANSWER, 3);
  await deliveries.flush();
  const kept = await rows();
  expect(kept.filter(({ outcome }) => outcome === "breaker_open")).toHaveLength(10);
  expect(kept.filter(({ outcome }) => outcome === "answered")).toHaveLength(100);
  await close();
});
