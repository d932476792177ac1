// A flood of refusals makes few rows, few writes and few log lines, and takes nothing from the refusals of others.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogLines } from "../../../ts/publish/refusals/log-lines.ts";
import { createPending, type PendingRefusal } from "../../../ts/publish/refusals/pending.ts";
import { createRefusalRecords } from "../../../ts/publish/refusals/refusal-records.ts";
import { createRefusalRows, SHARED_MS } from "../../../ts/publish/refusals/refusal-rows.ts";
import { until } from "../../support/child.ts";
import { startCustomer } from "../../support/customer.ts";
import { countStatements } from "../../support/large-store.ts";
import { openStage, STREAM, type Stage } from "../../support/publishing.ts";
import { isWholeRun } from "../../support/whole-run.ts";

const ADDRESS = "203.0.113.7";
/** As the titles say; fewer are enough to exceed every bound. */
const [FLOOD, GUESSES] = isWholeRun ? [10_000, 2_000] : [2_000, 800];
const AT = SHARED_MS * 3_000;

const refusal = (change: Partial<PendingRefusal> = {}): PendingRefusal => ({
  ...{ request: "publish", protocol: "rtmp", reason: "unknown_stream", organisation: null, stream: null },
  ...{ name: "Ab1Cd-wrong", address: ADDRESS, detail: "Unknown stream", count: 1, firstAt: AT, lastAt: AT },
  ...change,
});
const many = (count: number, change: (n: number) => Partial<PendingRefusal>) =>
  Array.from({ length: count }, (_, n) => refusal(change(n)));

describe("refusals that wait to be written", () => {
  test("are one when they are equal, with what the last one was told", () => {
    const pending = createPending();
    for (let n = 0; n < 1_000; n += 1) pending.add(refusal({ detail: `told ${n}`, firstAt: AT + n, lastAt: AT + n }));
    expect(pending.take(10)).toEqual([refusal({ count: 1_000, detail: "told 999", firstAt: AT, lastAt: AT + 999 })]);
    expect(pending.size).toBe(0);
  });

  test("of one network that guesses names are counted without them, and those of others keep theirs", () => {
    const pending = createPending();
    for (const each of many(10_000, (n) => ({ name: `Ab1Cd-${n}` }))) pending.add(each);
    pending.add(refusal({ name: "Ab1Cd-other", address: "203.0.113.8" }));
    const taken = pending.take(1_000);
    expect(taken).toHaveLength(52);
    expect(taken.find(({ name }) => name === null)).toMatchObject({ count: 9_950, address: ADDRESS });
    expect(taken.at(-1)).toMatchObject({ name: "Ab1Cd-other", count: 1 });
  });

  test("of one network without names, from 10,000 addresses and networks, leave room for others", () => {
    const pending = createPending();
    const nameless = { name: null, reason: "bad_request", protocol: "whip" } as const;
    for (const each of many(10_000, (n) => ({ ...nameless, address: `2001:db8::${n.toString(16)}` })))
      pending.add(each);
    expect(pending.size).toBe(61);
    for (const each of many(10_000, (n) => ({ ...nameless, address: `2001:db8:${n.toString(16)}::1` })))
      pending.add(each);
    pending.add(refusal({ organisation: "org1", stream: "s1", name: null }));
    const taken = pending.take(10_000);
    expect([taken.length, pending.dropped()]).toEqual([2_002, 0]);
    expect(taken.at(-1)).toMatchObject({ organisation: "org1", stream: "s1", address: ADDRESS });
    expect(taken.reduce((sum, { count }) => sum + count, 0)).toBe(20_001);
  });

  test.each([
    [
      "guessed from 10,000 networks",
      (n: number) => ({ name: `Ab1Cd-${n}`, address: `2001:db8:${n.toString(16)}::1` }),
      2_001,
    ],
    [
      "of one organisation at 10,000 streams",
      (n: number) => ({ organisation: "org1", stream: `s${n}`, name: null }),
      1_001,
    ],
  ])("%s are bounded, and all are counted", (_, change, most) => {
    const pending = createPending();
    for (const each of many(10_000, change)) pending.add(each);
    expect(pending.size).toBe(most);
    expect(pending.take(10_000).reduce((sum, { count }) => sum + count, 0)).toBe(10_000);
    expect(pending.dropped()).toBe(0);
  });

  test("of five organisations under flood leave room for a sixth, whose refusal keeps stream and address", () => {
    const pending = createPending();
    const known = (n: number) => ({ organisation: `org${n % 5}`, stream: `s${n}`, name: null });
    for (const each of many(20_000, known)) pending.add(each);
    for (const each of many(200, (n) => ({ ...known(0), organisation: "org6", stream: `t${n}` }))) pending.add(each);
    const taken = pending.take(10_000);
    expect(pending.dropped()).toBe(0);
    expect(taken.filter(({ organisation, stream }) => organisation === "org6" && stream !== null)).toHaveLength(200);
    expect(taken.reduce((sum, { count }) => sum + count, 0)).toBe(20_200);
    expect(taken.length).toBeLessThanOrEqual(5_000);
  });

  test("of many organisations are dropped beyond the limit, and counted", () => {
    const pending = createPending();
    for (const each of many(6_000, (n) => ({ organisation: `org${n}`, stream: `s${n}` }))) pending.add(each);
    expect([pending.size, pending.dropped(), pending.dropped()]).toEqual([5_000, 1_000, 0]);
  });
});

describe("rows", () => {
  test("of one stream from many addresses are few, and count all", () => {
    const rows = createRefusalRows();
    const known = { organisation: "org1", stream: "s1", name: null } as const;
    const made = rows.rowsOf(many(500, (n) => ({ ...known, address: `192.0.2.${n % 256}`, firstAt: AT + n })));
    expect(made).toHaveLength(21);
    expect(made.reduce((sum, { count }) => sum + count, 0)).toBe(500);
    expect(made.at(-1)).toMatchObject({ stream_id: "s1", address: "" });
    expect(rows.rowsOf([refusal({ ...known, stream: "s2" })])).toMatchObject([{ stream_id: "s2", address: ADDRESS }]);
  });

  test("of guessed names are twenty for a network, and bounded for all networks", () => {
    const rows = createRefusalRows();
    expect(rows.rowsOf(many(50, (n) => ({ name: `Ab1Cd-${n}` })))).toHaveLength(21);
    const made = rows.rowsOf(many(2_000, (n) => ({ name: `Ab1Cd-${n}`, address: `2001:db8:${n.toString(16)}::1` })));
    expect(made.length).toBeLessThanOrEqual(500);
    expect(made.at(-1)).toMatchObject({ name: null, address: "", organisation_id: "" });
  });

  test("of six organisations under flood leave room for a seventh, and are bounded", () => {
    const rows = createRefusalRows();
    const flood = many(60_000, (n) => ({ organisation: `org${n % 6}`, stream: `s${n}`, name: null }));
    const made = rows.rowsOf(flood);
    expect(made.length).toBeLessThanOrEqual(20_000);
    const other = rows.rowsOf(many(500, (n) => ({ organisation: "org7", stream: `t${n}`, name: null })));
    expect(other.filter(({ stream_id, address }) => stream_id !== null && address === ADDRESS)).toHaveLength(500);
    expect([...made, ...other].reduce((sum, { count }) => sum + count, 0)).toBe(60_500);
  });

  test("are the same on every node and after a restart, and new after ten minutes", () => {
    const idOf = (of: PendingRefusal) => createRefusalRows().rowsOf([of])[0]?.id;
    expect(idOf(refusal({ firstAt: AT + 1, count: 7 }))).toBe(idOf(refusal()));
    for (const other of [
      { firstAt: AT + SHARED_MS },
      { reason: "full" },
      { address: "192.0.2.1" },
      { name: "x" },
    ] as const)
      expect(idOf(refusal(other))).not.toBe(idOf(refusal()));
  });
});

test("log lines of one kind are bounded, and others are not", () => {
  let ms = AT;
  const lines = createLogLines({ now: () => ms }, 3);
  const written: unknown[] = [];
  const line = (kind: string) =>
    lines.line(
      kind,
      () => written.push(kind),
      (omitted) => written.push(omitted),
    );
  for (const kind of ["a", "a", "a", "a", "a", "b"]) line(kind);
  ms += 60_000;
  line("a");
  expect(written).toEqual(["a", "a", "a", "b", 2, "a"]);
});

describe("in the store", () => {
  let stage: Stage;
  let customer: Awaited<ReturnType<typeof startCustomer>>;
  beforeEach(async () => {
    customer = await startCustomer();
    stage = await openStage({ webhook: customer.url, ca: customer.ca });
  });
  afterEach(async () => {
    await stage.close();
    await customer.close();
  });

  test("ten thousand refusals of guessed names make few rows, few writes and few look-ups", async () => {
    const { counts, stop } = countStatements();
    for (let n = 0; n < FLOOD; n += 1) stage.ask(`Ab1Cd-${n}`);
    await until("all are answered", () => stage.media.commands.length >= FLOOD, 60_000);
    await stage.service.appDeps.refusals.flush();
    stop();
    const rows = await stage.db.selectFrom("refusal").select("count").execute();
    expect(rows.length).toBeLessThanOrEqual(500);
    expect(rows.reduce((sum, { count }) => sum + Number(count), 0)).toBe(FLOOD);
    // A hundred names of a network are looked up before it is known that they are wrong, and some more by the minute: the
    // bounds leave room for a machine that takes long. What the service asks its store by itself is not counted.
    const of = (table: string) =>
      [...counts].filter(([sql]) => sql.includes(`"${table}"`)).reduce((sum, [, count]) => sum + count, 0);
    expect([of("refusal"), of("stream")], JSON.stringify([...counts])).toSatisfy(
      ([writes = 0, looks = 0]) => writes <= 100 && looks > 0 && looks <= 500,
    );
    expect(stage.log().match(/"msg":"publish denied"/g)?.length).toBeLessThanOrEqual(1_000);
  });

  test.each([
    ["keys of a stream", { publish_key: true }, (n: number) => ({ arguments: `key=guess${n}` }), 22],
    ["tokens of a stream", { require_token: true }, (n: number) => ({ arguments: `token=guess${n}` }), 1],
    [
      "addresses to publish a stream from",
      { require_token: true },
      (n: number) => ({ address: `2001:db8:${n}::1` }),
      21,
    ],
  ] as const)(
    "two thousand %s cost the store the look-up of the stream each, and a few writes",
    async (_, settings, told, rows) => {
      await stage.change(settings);
      await stage.request(STREAM, { arguments: "key=first" });
      const { counts, stop } = countStatements();
      for (let n = 0; n < GUESSES; n += 1) stage.ask(STREAM, told(n));
      await until("all are answered", () => stage.media.commands.length >= GUESSES + 1, 60_000);
      await stage.service.appDeps.refusals.flush();
      stop();
      const [lookUps = 0, ...others] = [...counts.values()].toSorted((one, other) => other - one);
      expect(lookUps).toBe(GUESSES);
      // What is read and written by the second, however long it takes.
      expect(others.reduce((sum, count) => sum + count, 0)).toBeLessThan(400);
      const found = await stage.db.selectFrom("refusal").select("count").execute();
      expect(found.reduce((sum, { count }) => sum + Number(count), 0)).toBe(GUESSES + 1);
      // Twice as many when ten minutes of the clock end meanwhile.
      expect(found.length).toBeLessThanOrEqual(2 * (rows + 1));
    },
  );

  test("each organisation has a limited number of rows, and the oldest make room", async () => {
    const { db, reads, service } = stage;
    const records = createRefusalRecords({ db, reads, log: service.appDeps.log, rowsLimit: 30 });
    for (let n = 0; n < 100; n += 1) {
      const at = AT + n * SHARED_MS;
      records.add(refusal({ name: `Ab1Cd-${n}`, firstAt: at, lastAt: at }));
      records.add(refusal({ organisation: "org9", stream: `s${n}`, name: null, firstAt: at, lastAt: at }));
      if (n % 40 === 0) await records.flush();
    }
    await records.stop();
    const after = createRefusalRecords({ db, reads, log: service.appDeps.log, rowsLimit: 30 });
    for (const organisation of [null, "org9"]) after.add(refusal({ organisation, firstAt: AT * 2, lastAt: AT * 2 }));
    await after.flush();
    for (const organisation of ["", "org9"]) {
      const rows = await db
        .selectFrom("refusal")
        .select("first_at")
        .where("organisation_id", "=", organisation)
        .execute();
      expect(rows).toHaveLength(30);
      expect(Math.min(...rows.map(({ first_at }) => Number(first_at)))).toBeGreaterThan(AT + 60 * SHARED_MS);
    }
  });
});
