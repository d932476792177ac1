// Every refused publish and play is a row: of its stream where it is known, with the name as sent where it is not. Equal
// ones share a row, and a flood makes few rows and few writes.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listRefusals, type RefusalFilter } from "../../../ts/publish/refusals/refusal-list.ts";
import { SHARED_MS } from "../../../ts/publish/refusals/refusal-rows.ts";
import { prune } from "../../../ts/store/retention.ts";
import { startCustomer } from "../../support/customer.ts";
import { GivenCapacity } from "../../support/given-capacity.ts";
import { addStream, openStage, STREAM, type Stage, until } from "../../support/publishing.ts";

const ADDRESS = "203.0.113.7";
const ID = `stream ${STREAM}`;
const DAY_MS = 86_400_000;

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
      (db) => db.updateTable("stream").set({ refused_until: 1_767_229_200_000, refused_reason: "Off air" }).execute(),
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

  test("a publish that the customer denies is a row of the stream also when its own row could not be written", async () => {
    await stage.db.updateTable("node").set({ state: "lost" }).execute(); // others have declared this node dead
    customer.answer({ status: 403, headers: { "content-type": "text/plain" }, body: "No ticket" });
    await stage.request(STREAM);
    expect(await list({ streamId: ID })).toMatchObject([
      { reason: "rejected_by_customer", detail: "No ticket", stream: { id: ID } },
    ]);
  });

  test.each([
    ["is missing", false, 1],
    ["is there", true, 0],
  ])(
    "a refusal is recorded when the customer answered before it was known that its row %s",
    async (_, isThere, count) => {
      let tell = (_isRecorded: boolean): void => {};
      const isRecorded = new Promise<boolean>((resolve) => {
        tell = resolve;
      });
      const refused = { request: "publish", protocol: "rtmp", reason: "rejected_by_customer", name: null } as const;
      const about = { organisation: "org1", stream: ID };
      stage.service.appDeps.refusals.note({ ...refused, address: ADDRESS, description: null, about, isRecorded });
      const listed = list({ streamId: ID });
      tell(isThere);
      expect(await listed).toHaveLength(count);
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
    const token = async (streamname: string, exp: number | null = null) =>
      (await stage.tokens.issue({ streamname, ingesturl: "rtmp://x/live", exp, nbf: null, org: "Ab1Cd" })).token;
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
