// How publishing stops: a drain waits for running publishes and for nothing else.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { endingOf } from "../../ts/publish/ending/ending.ts";
import { startCustomer } from "../support/customer.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../support/publishing.ts";

/** Longer than the test may take: a drain that waits for it fails. */
const FOREVER_MS = 600_000;
/** Interval at which counters of running publishes are written. */
const PERSIST_EVERY_MS = 10_000;
/** So short that it ends while a publish runs. */
const SHORT_MS = 20;

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

test("without a running publish a drain ends immediately", async () => {
  await stage.publishing.drain(FOREVER_MS);
});

test("a drain ends when the last running publish has ended, and not before", async () => {
  await addStream(stage.db, "Ab1Cd-other", "created");
  const [first, last] = [await stage.allowed(STREAM), await stage.allowed("Ab1Cd-other")];
  let isOver = false;
  const drained = stage.publishing.drain(FOREVER_MS).then(() => {
    isOver = true;
  });
  expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
  stage.end(first);
  await until(() => stage.publishing.running().length === 1);
  // Everything triggered by the end of the first has run.
  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  stage.end(last);
  await drained;
  expect(stage.publishing.running()).toEqual([]);
});

test("a drain ends at its limit although a publish still runs", async () => {
  const clientId = await stage.allowed(STREAM);
  await stage.publishing.drain(SHORT_MS);
  expect(stage.publishing.running()).toHaveLength(1);
  stage.end(clientId);
});

test("counters are not read any more once publishing has stopped", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    await stage.close();
    stage = await openStage({ webhook: null, ca: null });
    await stage.allowed(STREAM);
    const read = vi.spyOn(stage.media, "snapshot");
    vi.advanceTimersByTime(PERSIST_EVERY_MS);
    expect(read).toHaveBeenCalled();
    await stage.publishing.stop();
    read.mockClear();
    vi.advanceTimersByTime(2 * PERSIST_EVERY_MS);
    expect(read).not.toHaveBeenCalled();
  } finally {
    vi.useRealTimers();
  }
});

test("a publish stopped while its customer is asked is denied, logged as stopped, and gets a publish_done", async () => {
  const customer = await startCustomer();
  await stage.close();
  stage = await openStage({ webhook: customer.url, ca: customer.ca });
  customer.answer(async ({ call }) => {
    if (call === "publish")
      stage.service.sessions.kick("org1", { streamId: `stream ${STREAM}` }, endingOf("ended_by_api", "Stopped"));
    return { status: 200 };
  });
  expect(await stage.request(STREAM)).toMatchObject({ command: "deny" });
  await customer.received("publish_done");
  const told = stage
    .log()
    .split("\n")
    .filter((line) => line.includes('"publish denied"'));
  expect(told.map((line) => JSON.parse(line))).toMatchObject([{ cause: "stopped", stream: `stream ${STREAM}` }]);
  await customer.close();
});

test("an ended publish cannot be stopped", async () => {
  const clientId = await stage.allowed(STREAM);
  stage.end(clientId);
  await until(() => stage.publishing.running().length === 0);
  expect(stage.publishing.kick(() => true, endingOf("ended_by_api", "Stopped"))).toBe(false);
});
