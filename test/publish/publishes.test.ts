// The registry of a node's publishes, from the request to the customer until the end is in the store: names,
// and who waits for what.
import { beforeEach, expect, test } from "vitest";
import { endingOf } from "../../ts/publish/ending/ending.ts";
import { createPublishes, type Publishes, type RunningPublish } from "../../ts/publish/publishes.ts";

const NAME = "Ab1Cd-9XyZ0";
const ORGANISATION = "org1";
const SLOT = { name: NAME, backup: false };

let publishes: Publishes;
beforeEach(() => {
  publishes = createPublishes();
});

function publishOf(clientId: number, session: string | null = null): RunningPublish {
  const intent = { ...SLOT, clientId, organisationId: "org1", streamId: "stream1" };
  return { clientId, intent, claims: null, protocol: "whip", session } as unknown as RunningPublish;
}

function started(clientId: number, session: string | null = null): RunningPublish {
  const reservation = publishes.reserve(SLOT, ORGANISATION);
  const publish = publishOf(clientId, session);
  reservation?.ask(publish);
  reservation?.settle();
  expect(publishes.answered(clientId)).toBeNull();
  publishes.start(publish);
  return publish;
}

test("a name is reserved for one request at a time, and belongs to its publish until it is freed", () => {
  const first = publishes.reserve(SLOT, ORGANISATION);
  expect(publishes.reserve(SLOT, ORGANISATION)).toBeNull();
  first?.release();
  started(1);
  expect(publishes.live(SLOT)).toBe(1);
  publishes.end(1);
  expect(publishes.live(SLOT)).toBe(1);
  publishes.freeName(publishOf(1), Promise.resolve());
  expect(publishes.live(SLOT)).toBeNull();
});

test("an end that is still being recorded is waited for, also after a request that was denied meanwhile", async () => {
  publishes.end(started(1).clientId);
  let recorded = () => {};
  publishes.freeName(publishOf(1), new Promise<void>((resolve) => (recorded = resolve)));
  publishes.reserve(SLOT, ORGANISATION)?.release();
  await Promise.resolve();
  publishes.reserve(SLOT, ORGANISATION);
  let waits = true;
  const waited = publishes.recorded(SLOT).then(() => {
    waits = false;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(waits).toBe(true);
  recorded();
  await waited;
});

test("a publish stopped while its customer is asked reports that once it is allowed", () => {
  const reservation = publishes.reserve(SLOT, ORGANISATION);
  reservation?.ask(publishOf(1));
  expect(publishes.stop(({ intent }) => intent.streamId === "stream1", endingOf("stream_locked"))).toEqual({
    running: [],
    count: 1,
  });
  reservation?.settle();
  expect(publishes.answered(1)).toEqual(endingOf("stream_locked"));
  expect(publishes.answered(1)).toBeNull();
});

test("a publish is found by its ids, and not by a session that its broadcaster closed", () => {
  started(1, "session1");
  expect(publishes.find(1)?.clientId).toBe(1);
  expect(publishes.ofStream("org1", "stream1")?.clientId).toBe(1);
  expect(publishes.ofStream("org2", "stream1")).toBeUndefined();
  expect(publishes.isEnding(1)).toBe(false);
  expect(publishes.closeSession("session1")?.clientId).toBe(1);
  expect(publishes.ofSession("session1")).toBeUndefined();
  expect([publishes.isEnding(1), publishes.running().length]).toEqual([true, 1]);
});

test("the end is reported once, and immediately if it has already happened; `empty` resolves at the last one", async () => {
  started(1);
  const told: string[] = [];
  publishes.onEnded(1, () => told.push("ended"));
  const empty = publishes.empty().then(() => told.push("empty"));
  publishes.end(1);
  publishes.end(1);
  await empty;
  publishes.onEnded(1, () => told.push("over"));
  expect(told).toEqual(["ended", "empty", "over"]);
});
