// Ends that the store cannot take, such as on a full disk: one line for each, however often it is tried, and one when it
// is recorded.
import { pino } from "pino";
import { expect, test } from "vitest";
import { StoreFailed } from "../../ts/errors.ts";
import { createLog } from "../../ts/log.ts";
import { createEnds } from "../../ts/publish/ends.ts";

/** A store whose reads fail while it is full, and afterwards find no open publish. */
function smallStore() {
  const disk = { isFull: true };
  const query = {
    selectAll: () => query,
    where: () => query,
    executeTakeFirst: async () => {
      if (disk.isFull) throw new StoreFailed("database or disk is full");
    },
  };
  return { disk, db: { selectFrom: () => query } as never };
}

test("an end is reported once when the store cannot take it, and once when it has it", async () => {
  const lines: string[] = [];
  const log = await createLog({ level: "info", format: "json" }, false, { write: (line) => void lines.push(line) });
  const { disk, db } = smallStore();
  const outbox = { hold: () => {}, release: () => {}, wake: () => {} };
  const ends = createEnds({ db, outbox, clock: { now: () => 0 }, log });
  const ended = { reason: "unpublished", ending: null, counters: null, epoch: 1 } as const;
  await Promise.all([1, 2, 3].map((clientId) => ends.record({ ...ended, clientId }).tried));
  for (let count = 0; count < 5; count += 1) await ends.retry();
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject(
    [1, 2, 3].map((clientId) => ({ level: 50, clientId, msg: "end of publish could not be recorded yet" })),
  );
  expect(lines.join("")).not.toContain("stack");
  disk.isFull = false;
  await ends.retry();
  await ends.retry();
  expect(lines.slice(3).map((line) => JSON.parse(line) as object)).toMatchObject(
    [1, 2, 3].map((clientId) => ({ level: 30, clientId, msg: "end of publish is recorded now" })),
  );
});

test("a store that fails is asked about a few ends at a time, whoever waits, and one that works about all", async () => {
  const { disk, db } = smallStore();
  const outbox = { hold: () => {}, release: () => {}, wake: () => {} };
  let tries = 0;
  const now = () => {
    tries += 1; // once for each attempt
    return 0;
  };
  const ends = createEnds({ db, outbox, clock: { now }, log: pino({ level: "silent" }) });
  const ended = { reason: "unpublished", ending: null, counters: null, epoch: 1 } as const;
  const ids = Array.from({ length: 200 }, (_, at) => at + 1);
  await Promise.all(ids.map((clientId) => ends.record({ ...ended, clientId }).tried));
  tries = 0;
  await Promise.all(ids.map(() => ends.retry()));
  expect(tries).toBe(3);
  disk.isFull = false;
  tries = 0;
  await Promise.all(ids.map(() => ends.retry()));
  expect(tries).toBe(200);
});

test("a publish waits for the end of its own stream alone", async () => {
  const { disk, db } = smallStore();
  const outbox = { hold: () => {}, release: () => {}, wake: () => {} };
  let tries = 0;
  const now = () => {
    tries += 1;
    return 0;
  };
  const ends = createEnds({ db, outbox, clock: { now }, log: pino({ level: "silent" }) });
  const ended = { reason: "unpublished", ending: null, counters: null, epoch: 1 } as const;
  const subject = { app: "live", address: "192.0.2.1", arguments: null, streamId: "s" };
  const names = ["one", "two", "three", "two"];
  const recordings = names.map((name, at) =>
    ends.record({ ...ended, clientId: at + 1, subject: { ...subject, clientId: at + 1, name } }),
  );
  await Promise.all(recordings.map(({ tried }) => tried));
  disk.isFull = false;
  tries = 0;
  await ends.retry("two");
  expect(tries).toBe(2);
});
