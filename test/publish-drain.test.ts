// What the publishing does before it stops: a drain waits for running publishes and for nothing else.
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStage, STREAM, type Stage } from "./support/publishing.ts";

/** Longer than the test may take: a drain that waits for it fails. */
const FOREVER_MS = 600_000;
/** So short that it is over while a publish runs. */
const SHORT_MS = 20;

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

test("without a running publish a drain is over at once", async () => {
  await stage.publishing.drain(FOREVER_MS);
});

test("a drain is over when the last running publish has ended, and not before", async () => {
  const clientId = await stage.allowed(STREAM);
  let isOver = false;
  const drained = stage.publishing.drain(FOREVER_MS).then(() => {
    isOver = true;
  });
  expect(await stage.request("Ab1Cd-9XyZ0")).toMatchObject({ told: "deny" });
  expect(isOver).toBe(false);
  stage.end(clientId);
  await drained;
  expect(stage.publishing.running()).toEqual([]);
});

test("a drain ends by its limit although a publish still runs", async () => {
  const clientId = await stage.allowed(STREAM);
  await stage.publishing.drain(SHORT_MS);
  expect(stage.publishing.running()).toHaveLength(1);
  stage.end(clientId);
});
