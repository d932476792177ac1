// Wherever calls wait, publish calls come first, and a call whose deadline has passed leaves. How many deliveries are in
// flight follows from the answers.
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Turnstile } from "../../ts/capacity/turnstile.ts";
import type { Resolve } from "../../ts/publish/addresses/resolver.ts";
import { priorityOf } from "../../ts/publish/webhook/call-priority.ts";
import { createConnections } from "../../ts/publish/webhook/connections.ts";
import { IN_FLIGHT_LIMIT as CALLS_LIMIT, CallPlaces, CustomerGate } from "../../ts/publish/webhook/customer-gate.ts";
import { Deadline } from "../../ts/publish/webhook/deadline.ts";
import { Exchange } from "../../ts/publish/webhook/exchange.ts";
import { DeliveryPlaces, IN_FLIGHT_LIMIT } from "../../ts/publish/webhook/outbox/delivery-places.ts";

const patient = () => new Deadline(60_000);

describe("the calls of one organisation", () => {
  async function full(): Promise<{ readonly gate: CustomerGate; readonly places: CallPlaces }> {
    const places = new CallPlaces();
    const gate = new CustomerGate(places);
    for (let taken = 0; taken < CALLS_LIMIT; taken += 1) await gate.enter(0, patient());
    return { gate, places };
  }

  test("are served by what they are about: publishes, then updates, then other events", async () => {
    const { gate } = await full();
    const order: string[] = [];
    for (const call of ["publish_done", "update_publish", "publish", "publish_done", "publish"]) {
      void gate.enter(0, patient(), priorityOf(call)).then(() => order.push(call));
    }
    for (let left = 0; left < 5; left += 1) gate.leave(false, 1);
    await turn();
    expect(order).toEqual(["publish", "publish", "update_publish", "publish_done", "publish_done"]);
  });

  test("a publish takes the place of a delivery that waits, never the reverse", async () => {
    const { gate } = await full();
    const deliveries = Array.from({ length: 2_000 }, () => gate.enter(0, patient(), "delivery"));
    expect(await gate.enter(0, patient(), "delivery")).toBe("no_place");
    void gate.enter(0, patient(), "publish");
    expect(await deliveries[0]).toBe("no_place");
    expect(gate.waiting).toBe(2_000);
  });

  test("are a hundred in flight for all its URLs together", async () => {
    const { gate, places } = await full();
    const other = new CustomerGate(places);
    const entering = other.enter(0, patient());
    expect(other.waiting).toBe(1);
    gate.leave(false, 1);
    expect(await entering).toBe("entered");
  });

  test("one whose deadline passed while the process was busy does not begin", async () => {
    const { gate } = await full();
    const late = new Deadline(5);
    const [entering, next] = [gate.enter(0, late), gate.enter(0, patient())];
    const until = performance.now() + 10;
    while (performance.now() < until); // timers do not run meanwhile
    gate.leave(false, 1);
    expect([await entering, await next]).toEqual(["deadline", "entered"]);
  });
});

test("connections are opened for publish calls first", async () => {
  const turnstile = new Turnstile(1, { levels: 3 });
  const order: string[] = [];
  for (const [name, priority] of [
    ["delivery", 2],
    ["update", 1],
    ["publish", 0],
  ] as const) {
    turnstile.pass(() => order.push(name), priority);
  }
  const unwanted = () => order.push("left");
  turnstile.pass(unwanted);
  expect([turnstile.leave(unwanted), turnstile.leave(unwanted)]).toEqual([true, false]);
  while (turnstile.waiting > 0) await turn();
  expect(order).toEqual(["publish", "update", "delivery"]);
});

describe("the connections of an organisation", () => {
  const request = (host: string) => ({
    ...{ url: new URL(`https://${host}/`), headers: [], body: Buffer.from("call=publish") },
    priority: "publish" as const,
  });

  test.each(["a name that hangs", "a name that fails late", "many names"])(
    "look names up on its own account: %s",
    async (kind) => {
      const owners: (string | undefined)[] = [];
      let fail: (error: Error) => void = () => {};
      const failure = new Promise<never>((_, reject) => {
        fail = reject;
      });
      const resolve: Resolve = async (_, owner) => {
        owners.push(owner);
        if (kind === "a name that hangs") await new Promise(() => {});
        if (kind === "a name that fails late") await failure;
        throw new Error("no such name");
      };
      const connections = createConnections({ webhookCa: null, dev: true, resolve });
      const names = kind === "many names" ? ["a.example", "b.example", "c.example"] : ["a.example"];
      const calls = ["org1", "org2"].flatMap((organisation) =>
        names.map((host) => new Exchange(connections.of(organisation), request(host), new Deadline(200)).exchanged),
      );
      for (const { answer } of await Promise.all(calls)) expect(answer.outcome).toBe("unreachable");
      failure.catch(() => {});
      fail(new Error("no such name"));
      expect(owners.toSorted()).toEqual(["org1", "org2"].flatMap((organisation) => names.map(() => organisation)));
      await connections.destroy();
    },
  );
});

describe("deliveries", () => {
  /** Begins what may begin of these organisations, in turn. */
  function fill(places: DeliveryPlaces, organisations: readonly string[], now: number) {
    return organisations.flatMap((organisation) => {
      const { places: free } = places.placesOf(organisation, now);
      return Array.from({ length: free }, () => places.begin(organisation, now));
    });
  }
  const names = (count: number, prefix = "o") => Array.from({ length: count }, (_, at) => `${prefix}${at}`);

  test("of one organisation begin with one, and with one more for each answer, up to 32", () => {
    const places = new DeliveryPlaces();
    const counts: number[] = [];
    for (let now = 0; now < 200_000; now += 2_000) {
      const begun = fill(places, ["o"], now);
      counts.push(begun.length);
      for (const place of begun) places.end(place, "answered");
    }
    expect(counts.slice(0, 3)).toEqual([1, 2, 4]);
    expect(Math.max(...counts)).toBe(32);
  });

  test.each([
    ["unanswered", 1],
    ["withheld", 1],
    ["slowed", 3],
  ] as const)("become fewer when one is %s", (outcome, left) => {
    const places = new DeliveryPlaces();
    for (let at = 0; at < 5; at += 1)
      for (const place of fill(places, ["o"], at).slice(0, 1)) places.end(place, "answered");
    const [idle] = fill(new DeliveryPlaces(), ["o"], 0);
    expect(idle).toBeDefined();
    const known = new DeliveryPlaces();
    for (let at = 0; at < 5; at += 1) known.end(known.begin("o", at), "answered");
    known.end(known.begin("o", 9), outcome);
    expect(known.placesOf("o", 9).places).toBe(left);
  });

  test("are never more than the document says, however many organisations and however old", () => {
    const places = new DeliveryPlaces();
    let now = 0;
    for (const round of names(50)) {
      now += 2_000;
      for (const place of fill(places, names(400, `${round}-`), now)) if (now < 60_000) places.end(place, "answered");
      expect(places.inFlight).toBeLessThanOrEqual(IN_FLIGHT_LIMIT);
    }
    // Customers that have never answered leave places to those that do.
    expect(places.inFlight).toBe(192);
    expect(fill(places, names(64, "o3-"), now + 2_000).length).toBeGreaterThan(0);
  });

  test("are fewer while this process is late, and never none", () => {
    const places = new DeliveryPlaces();
    for (let round = 0; round < 8; round += 1) {
      for (const place of fill(places, names(300), round)) places.end(place, "answered");
    }
    const before = places.room(10);
    places.late();
    expect(places.room(10)).toBeLessThan(before);
    for (let times = 0; times < 50; times += 1) places.late();
    expect(places.room(10)).toBe(8);
  });
});
