// Every refused publish and play is a row: of its stream where it is known, with the name as sent where it is not. Equal
// ones share a row, and a flood makes few rows and few writes.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createLogLines } from "../ts/publish/refusals/log-lines.ts";
import { createPending, type PendingRefusal } from "../ts/publish/refusals/pending.ts";
import { listRefusals, type RefusalFilter } from "../ts/publish/refusals/refusal-list.ts";
import { createRefusalRecords } from "../ts/publish/refusals/refusal-records.ts";
import { createRefusalRows, SHARED_MS } from "../ts/publish/refusals/refusal-rows.ts";
import { prune } from "../ts/store/retention.ts";
import { startCustomer } from "./support/customer.ts";
import { GivenCapacity } from "./support/given-capacity.ts";
import { recordStatements } from "./support/large-store.ts";
import { addStream, openStage, STREAM, type Stage, until } from "./support/publishing.ts";

const ADDRESS = "203.0.113.7";
const ID = `stream ${STREAM}`;
const AT = SHARED_MS * 3_000;
const DAY_MS = 86_400_000;

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
  let capacity: GivenCapacity;
  let customer: Awaited<ReturnType<typeof startCustomer>>;
  beforeEach(async () => {
    capacity = new GivenCapacity();
    customer = await startCustomer();
    stage = await openStage({ webhook: customer.url, ca: customer.ca, capacity });
  });
  afterEach(async () => {
    await stage.close();
    await customer.close();
  });

  const asking = () => stage.db.selectFrom("publish").select("client_id").where("state", "=", "asking").execute();
  const list = async (change: Partial<RefusalFilter> = {}) => {
    await stage.service.appDeps.refusals.flush();
    await until(async () => (await asking()).length === 0);
    const all = { organisationId: "org1", streamId: null, unknown: true, reason: null, request: null };
    const page = { from: null, to: null, behind: null, quantity: 100 };
    return (await listRefusals(stage.reads, { ...all, ...page, ...change })).refusals;
  };

  test.each([
    ["locked", "locked_stream", (db) => db.updateTable("stream").set({ state: "locked" }).execute()],
    [
      "ended with refuse_s",
      "refused_after_end",
      (db) => db.updateTable("stream").set({ refused_until: 4e12, refused_reason: "Off air" }).execute(),
    ],
    [
      "of a disabled organisation",
      "organisation_disabled",
      (db) => db.updateTable("organisation").set({ enabled: 0 }).execute(),
    ],
    [
      "at the limit of streams",
      "too_many_streams",
      async (db) => {
        await db.updateTable("organisation").set({ max_streams: 1 }).execute();
        await addStream(db, "Ab1Cd-other", "created");
        await stage.allowed("Ab1Cd-other");
      },
    ],
    [
      "at the rate of its organisation",
      "too_many_setups",
      async (db) => {
        await db.updateTable("organisation").set({ max_setups_per_second: 1 }).execute();
        await addStream(db, "Ab1Cd-other", "created");
        for (let n = 0; n < 3; n += 1) stage.end(await stage.allowed("Ab1Cd-other"));
      },
    ],
    ["when live", "already_live", () => stage.allowed(STREAM)],
    ["without a token", "token_required", () => stage.change({ require_token: true })],
  ] as readonly (readonly [string, string, (db: Stage["db"]) => Promise<unknown>])[])(
    "a publish of a stream that is %s is a row of the stream",
    async (_, reason, arrange) => {
      await arrange(stage.db);
      await stage.request(STREAM, { arguments: "passcode=s3cret" });
      expect(await list({ streamId: ID })).toMatchObject([
        {
          reason,
          protocol: "rtmp",
          request: "publish",
          address: ADDRESS,
          count: 1,
          stream: { id: ID },
          sentName: null,
        },
      ]);
      expect(JSON.stringify(await stage.db.selectFrom("refusal").selectAll().execute())).not.toContain("s3cret");
      expect(await list({ organisationId: "org2", unknown: false })).toEqual([]);
    },
  );

  test.each([
    ["a reserved field", "reserved_field", { arguments: "clientid=1" }, () => {}],
    [
      "a full node",
      "full",
      {},
      () => {
        capacity.full = "no memory";
      },
    ],
    ["a draining node", "stopping", {}, (): void => void stage.publishing.drain(0)],
    [
      "too many wrong names",
      "too_many_names",
      {},
      async (): Promise<void> => {
        for (let n = 0; n < 20; n += 1) await stage.request(`Ab1Cd-${n}`);
      },
    ],
  ] as const)(
    "a publish refused before its stream is looked up (%s) is a row of it all the same",
    async (_, reason, told, arrange) => {
      await arrange();
      await stage.request(STREAM, told);
      expect(await list({ streamId: ID })).toMatchObject([
        { reason, stream: { id: ID, name: STREAM }, sentName: null },
      ]);
    },
  );

  test("expired, revoked, foreign and invalid tokens are told apart", async () => {
    await stage.change({ require_token: true });
    const token = (streamname: string, exp: number | null = null) =>
      stage.tokens.issue({ streamname, ingesturl: "rtmp://x/live", exp, nbf: null, org: "Ab1Cd" });
    const short = await token(STREAM, Math.floor(stage.clock.ms / 1_000) + 1);
    stage.clock.ms += 2_000;
    for (const each of [short, await token("Ab1Cd-other"), "nonsense"]) {
      const answer = await stage.request(STREAM, { arguments: `token=${each}` });
      expect(answer).toMatchObject({ description: "A web token for this stream is required" });
    }
    const reasons = (await list({ streamId: ID })).map(({ reason }) => reason);
    expect(reasons.toSorted()).toEqual(["token_expired", "token_invalid", "token_of_another_stream"]);
  });

  test("what the webhook denies is listed once, among the others, whether it was reached or not", async () => {
    customer.answer(() => ({ status: 403, type: "text/plain", body: "Wrong passcode" }));
    await stage.request(STREAM);
    stage.clock.ms += 1_000;
    await stage.request("Ab1Cd-wrong");
    await customer.close();
    stage.clock.ms += 1_000;
    await stage.request(STREAM);
    const found = await list();
    expect(found.map(({ reason, clientId, sentName }) => [reason, clientId !== null, sentName])).toEqual([
      ["customer_unreachable", expect.any(Boolean), null],
      ["unknown_stream", false, "Ab1Cd-wrong"],
      ["rejected_by_customer", true, null],
    ]);
    expect(await list({ unknown: false })).toHaveLength(2);
    expect(await list({ reason: "rejected_by_customer" })).toHaveLength(1);
    expect(await list({ request: "play" })).toEqual([]);
  });

  test("refused players are rows: of a stream that is not live, and of no stream", async () => {
    let request = 900_000;
    for (const name of [STREAM, "Ab1Cd-wrong"]) {
      request += 1;
      const sent = { request, name: Buffer.from(name), clientId: null, arguments: null, address: ADDRESS };
      stage.publishing.handle({ kind: "play_requested", ...sent });
      await stage.answered(request);
    }
    const found = await list({ request: "play" });
    expect(found.map(({ reason, stream, sentName }) => [reason, stream?.name ?? null, sentName]).toSorted()).toEqual([
      ["not_live", null, "Ab1Cd-wrong"],
      ["not_live", STREAM, null],
    ]);
  });

  test("a name is stored as text that controls nothing, and never with its arguments", async () => {
    for (const name of ["\u0000\u001b[31mred", "a?token=s3cret", "é".repeat(300), ""]) await stage.request(name);
    const rows = await list();
    expect(rows.every(({ sentName }) => !/[\p{Cc}]|s3cret/u.test(sentName ?? ""))).toBe(true);
    expect(rows.every(({ sentName }) => [...(sentName ?? "")].length <= 255)).toBe(true);
    expect(stage.log()).not.toContain("s3cret");
  });

  test("repetitions are one row with a count; the next ten minutes have their own", async () => {
    await stage.db.updateTable("stream").set({ state: "locked" }).execute();
    for (let n = 0; n < 5; n += 1) {
      await stage.request(STREAM);
      stage.clock.ms += 1_000;
      if (n === 2) await list();
    }
    const [row, ...others] = await list({ streamId: ID });
    expect([row?.count, (row?.lastAt ?? 0) - (row?.firstAt ?? 0), others]).toEqual([5, 4_000, []]);
    stage.clock.ms += SHARED_MS;
    await stage.request(STREAM);
    expect(await list({ streamId: ID })).toHaveLength(2);
  });

  test("are found by the time at which they happened", async () => {
    await stage.db.updateTable("stream").set({ state: "locked" }).execute();
    const start = stage.clock.ms;
    await stage.request(STREAM);
    stage.clock.ms += 60_000;
    await stage.request(STREAM);
    const between = (from: number | null, to: number | null) => list({ from, to }).then(({ length }) => length);
    expect(await between(start + 60_000, null)).toBe(1);
    expect(await between(start + 60_001, null)).toBe(0);
    expect(await between(null, start)).toBe(0);
    expect(await between(start, start + 1)).toBe(1);
  });

  test("pages continue where the last one ended, whatever kinds they mix", async () => {
    await addStream(stage.db, "Ab1Cd-lock0", "locked");
    for (let n = 0; n < 12; n += 1) {
      customer.answer(() => ({ status: 403 }));
      await stage.request([STREAM, "Ab1Cd-lock0", `Ab1Cd-wrong${n}`][n % 3] ?? "", { address: `192.0.2.${n}` });
      if (n % 2 === 0) stage.clock.ms += 1;
    }
    const whole = (await list()).map(({ id }) => id);
    expect(whole).toHaveLength(12);
    const paged: string[] = [];
    let behind: RefusalFilter["behind"] = null;
    for (;;) {
      const page = await list({ quantity: 5, behind });
      paged.push(...page.map(({ id }) => id));
      if (page.length < 5) break;
      behind = page.at(-1)?.position ?? null;
    }
    expect(paged).toEqual(whole);
  });

  test("ten thousand refusals of guessed names make few rows, few writes and few look-ups", async () => {
    const { statements, stop } = recordStatements(stage.reads);
    for (let n = 0; n < 10_000; n += 1) stage.ask(`Ab1Cd-${n}`);
    while (stage.media.commands.length < 10_000) await new Promise((resolve) => setTimeout(resolve, 20));
    await list();
    stop();
    const rows = await stage.db.selectFrom("refusal").select("count").execute();
    expect(rows.length).toBeLessThanOrEqual(50);
    expect(rows.reduce((sum, { count }) => sum + Number(count), 0)).toBe(10_000);
    expect(statements.size).toBeLessThan(50);
    expect(stage.log().match(/"msg":"publish denied"/g)?.length).toBeLessThanOrEqual(240);
  });

  test("no publish waits for them, and none is lost while the store cannot be written", async () => {
    const insertInto = stage.db.insertInto.bind(stage.db) as (table: string) => unknown;
    let failures = 0;
    Object.assign(stage.db, {
      insertInto(table: string) {
        if (table !== "refusal") return insertInto(table);
        failures += 1;
        throw new Error("disk full");
      },
    });
    await stage.request("Ab1Cd-wrong");
    await stage.allowed(STREAM);
    await expect(stage.service.appDeps.refusals.flush()).rejects.toThrow("disk full");
    await stage.request("Ab1Cd-wrong");
    Object.assign(stage.db, { insertInto });
    expect(await list()).toMatchObject([{ sentName: "Ab1Cd-wrong", count: 2 }]);
    expect(failures).toBeGreaterThan(0);
  });

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

  test("are removed as the personal data of denied publishes is", async () => {
    await stage.request("Ab1Cd-wrong");
    await list();
    const days = { publishes: 90, audit: 400, deliveries: 30, denied: 7 };
    await prune(stage.db, days, stage.clock.ms + 6 * DAY_MS);
    expect(await list()).toHaveLength(1);
    await prune(stage.db, days, stage.clock.ms + 8 * DAY_MS);
    expect(await list()).toEqual([]);
  });
});
