// The gate of a customer (W25): places, the queue, the breaker.
import { describe, expect, test } from "vitest";
import { CustomerGate, IN_FLIGHT_LIMIT, OPEN_AFTER, PROBE_EVERY_MS } from "../../ts/publish/webhook/customer-gate.ts";
import { Deadline } from "../../ts/publish/webhook/deadline.ts";

/** Times out only when the test makes it. */
const patient = () => new Deadline(60_000);

async function full(): Promise<CustomerGate> {
  const gate = new CustomerGate();
  for (let taken = 0; taken < IN_FLIGHT_LIMIT; taken += 1) expect(await gate.enter(0, patient())).toBe("entered");
  return gate;
}

test("the limits are those of W25", () => {
  expect({ IN_FLIGHT_LIMIT, OPEN_AFTER, PROBE_EVERY_MS }).toEqual({
    IN_FLIGHT_LIMIT: 100,
    OPEN_AFTER: 10,
    PROBE_EVERY_MS: 5_000,
  });
});

describe("a gate", () => {
  test("lets a hundred calls in, and the next ones in order as places become free", async () => {
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

  test("lets no call wait longer than its own deadline", async () => {
    const gate = await full();
    expect(await gate.enter(0, new Deadline(5))).toBe("deadline");
    expect(gate.waiting).toBe(0);
  });

  test("rejects calls immediately when two thousand wait", async () => {
    const gate = await full();
    for (let at = 0; at < 2_000; at += 1) void gate.enter(0, patient());
    expect(await gate.enter(0, patient())).toBe("no_place");
  });

  test("opens the breaker after ten time-outs in a row, and then rejects new calls", async () => {
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

  test("rejects all waiting calls when the breaker opens, a few per turn of the event loop", async () => {
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

  test("resets the count of time-outs at an answer", async () => {
    const gate = await full();
    for (let late = 1; late < OPEN_AFTER; late += 1) gate.leave(true, 100);
    gate.leave(false, 100);
    for (let late = 1; late < OPEN_AFTER; late += 1) gate.leave(true, 100);
    expect(gate.isOpen).toBe(false);
  });

  test("lets one probe through every five seconds, and closes the breaker at its first answer", async () => {
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
