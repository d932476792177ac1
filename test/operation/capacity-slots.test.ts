// Work that arrives in a crowd is done a few at a time, in order, and what waits for something does not keep out others.
import { expect, test } from "vitest";
import { Slots } from "../../ts/capacity/slots.ts";

const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

test("as many work at the same time as the limit allows, in order of arrival, the urgent ones first", async () => {
  const slots = new Slots(2);
  const begun: string[] = [];
  const leaves: (() => void)[] = [];
  const enter = (name: string, isUrgent = false) =>
    slots.enter(isUrgent).then((leave) => {
      begun.push(name);
      leaves.push(leave);
    });
  const all = [enter("a"), enter("b"), enter("c"), enter("d"), enter("urgent", true)];
  await turnOfTheLoop();
  await turnOfTheLoop();
  expect(begun).toEqual(["a", "b"]);
  expect(slots.waiting).toBe(3);
  for (let at = 0; at < 5; at += 1) {
    leaves[at]?.();
    leaves[at]?.(); // counts once
    await turnOfTheLoop();
  }
  await Promise.all(all);
  expect(begun).toEqual(["a", "b", "urgent", "c", "d"]);
  expect(slots.waiting).toBe(0);
});

test("work that takes long no longer counts", async () => {
  const slots = new Slots(1);
  await slots.enter();
  await slots.enter();
  expect(slots.waiting).toBe(0);
});
