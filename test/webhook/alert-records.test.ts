// Alerts that the store does not take: kept, written later, and said once.
import { sql } from "kysely";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createAlertRecords, WAITING_LIMIT } from "../../ts/publish/alerts/alert-records.ts";
import { watchForAlerts } from "../../ts/publish/alerts/alerts.ts";
import { createPublishEvents } from "../../ts/publish/publish-events.ts";
import { openStage, type Stage, until } from "../support/publishing.ts";

let stage: Stage;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
});
afterEach(() => stage.close());

const COPIES = { url: "https://b.example/", events: "alerts", keys: [] } as const;

/** Alerts for the second webhook of org1, and what is logged of them. */
async function openRecords(tried = () => {}) {
  const { db, clock, service } = stage;
  const customer = await service.customers.of("org1");
  const lines: string[] = [];
  const records = createAlertRecords({
    db,
    member: {
      get epoch() {
        tried();
        return 1;
      },
    },
    customers: { of: async () => ({ ...customer, copies: COPIES }) },
    outboxes: { outbox: { added() {} }, webhook_copy_outbox: { added() {} } },
    clock: { now: () => clock.ms },
    log: pino({ level: "warn" }, { write: (line: string) => void lines.push(line) }),
  });
  return { records, lines };
}

test("alerts that cannot be written are logged once, and written as soon as the store takes them", async () => {
  const { db, clock } = stage;
  let tries = 0;
  const { records, lines } = await openRecords(() => {
    tries += 1;
  });
  await sql`
    create trigger full before insert on webhook_copy_outbox begin select raise(abort, 'the disk is full'); end
  `.execute(db);
  const events = ["webhook_failing", "webhook_back", "webhook_failing"];
  for (const [at, event] of events.entries()) {
    const text = { event, since: clock.ms, upstream: null, detail: `${at}` };
    records.add({ organisationId: "org1", subject: null, webhook: null, trace: null, text });
    await until(() => tries > at);
    await records.stop(5_000); // waits for the attempt
  }
  expect(tries).toBeGreaterThanOrEqual(3);
  expect(lines.map((line) => (JSON.parse(line) as { readonly msg: string }).msg)).toEqual([
    "alerts could not be written yet",
  ]);
  await sql`drop trigger full`.execute(db);
  await records.stop(5_000);
  const rows = await db.selectFrom("webhook_copy_outbox").select("body").orderBy("created_at").execute();
  const sent = rows.map(({ body }) => new URLSearchParams(body).get("detail"));
  // The clock stood still.
  expect(sent).toEqual(["0", "1", "2"]);
  const times = await db.selectFrom("webhook_copy_outbox").select("created_at").distinct().execute();
  expect(times).toHaveLength(3);
  expect(lines).toHaveLength(1);
});

test("an organisation whose settings cannot be read holds up nobody else's alerts", async () => {
  const { db, clock, service } = stage;
  const customer = await service.customers.of("org1");
  let isBroken = true;
  const records = createAlertRecords({
    db,
    member: { epoch: 1 },
    customers: {
      async of(organisationId) {
        if (isBroken && organisationId !== "org1") throw new Error("its secret cannot be opened");
        return { ...customer, copies: COPIES };
      },
    },
    outboxes: { outbox: { added() {} }, webhook_copy_outbox: { added() {} } },
    clock: { now: () => clock.ms },
    log: pino({ level: "silent" }),
  });
  const text = { event: "webhook_failing", since: clock.ms, upstream: null, detail: "" } as const;
  const add = (organisationId: string) =>
    records.add({ organisationId, subject: null, webhook: null, trace: null, text });
  const others = ["orgA", "orgB", "orgC", "orgD"];
  const row = { plan: "paid", enabled: 1, webhook: null, created_at: clock.ms, updated_at: clock.ms } as const;
  const organisations = others.map((id) => ({ ...row, id, name: id, hash: id }));
  await db.insertInto("organisation").values(organisations).execute();
  for (const organisation of [...others, "org1"]) add(organisation);
  const written = async () => {
    const rows = await db.selectFrom("webhook_copy_outbox").select("organisation_id").execute();
    return rows.map(({ organisation_id }) => organisation_id).toSorted();
  };
  await records.stop(5_000); // three that fail: the others wait for the next attempt
  await records.stop(5_000);
  expect(await written()).toEqual(["org1"]);
  isBroken = false;
  await records.stop(5_000);
  expect(await written()).toEqual(["org1", ...others]);
});

test("an alert for two receivers of which one cannot be written yet reaches the other once", async () => {
  const { db, clock, service } = stage;
  const customer = await service.customers.of("org1");
  const records = createAlertRecords({
    db,
    member: { epoch: 1 },
    customers: {
      of: async () => ({ ...customer, settings: { ...customer.settings, health_events: true }, copies: COPIES }),
    },
    outboxes: { outbox: { added() {} }, webhook_copy_outbox: { added() {} } },
    clock: { now: () => clock.ms },
    log: pino({ level: "silent" }),
  });
  await sql`
    create trigger full before insert on webhook_copy_outbox begin select raise(abort, 'the disk is full'); end
  `.execute(db);
  const text = { event: "media_lost", since: clock.ms, upstream: null, detail: "" } as const;
  records.add({ organisationId: "org1", subject: null, webhook: "https://a.example/", trace: null, text });
  await records.stop(5_000);
  await records.stop(5_000);
  await sql`drop trigger full`.execute(db);
  await records.stop(5_000);
  const count = async (table: "outbox" | "webhook_copy_outbox") =>
    (await db.selectFrom(table).select("id").execute()).length;
  expect([await count("outbox"), await count("webhook_copy_outbox")]).toEqual([1, 1]);
});

test("an organisation whose webhook takes no alerts has a thousand that wait, and no more", async () => {
  const { db, clock } = stage;
  const { records, lines } = await openRecords();
  const times = { next_attempt_at: clock.ms, created_at: clock.ms, epoch: 1 };
  const waiting = Array.from({ length: WAITING_LIMIT - 1 }, (_, at) => ({
    ...{
      id: `msg_${at}`,
      organisation_id: "org1",
      client_id: 0,
      url: COPIES.url,
      body: "call=health",
      call: "health" as const,
    },
    ...times,
  }));
  await db.insertInto("webhook_copy_outbox").values(waiting).execute();
  const text = { event: "webhook_failing", since: clock.ms, upstream: null, detail: "" } as const;
  const written = async () => {
    records.add({ organisationId: "org1", subject: null, webhook: null, trace: null, text });
    await records.stop(5_000); // waits until it is written
    return (await db.selectFrom("webhook_copy_outbox").select("id").execute()).length;
  };
  expect(await written()).toBe(WAITING_LIMIT);
  expect(lines).toEqual([]);
  expect(await written()).toBe(WAITING_LIMIT);
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([{ dropped: 1 }]);
});

test("a failing webhook is reported within seconds after the clock was set back by an hour", () => {
  const log = pino({ level: "silent" });
  const events = createPublishEvents(log);
  const alerts: string[] = [];
  let now = 7_200_000;
  watchForAlerts({
    events,
    records: { add: ({ text }) => void alerts.push(text.event) },
    metrics: { countAlert() {} },
    clock: { now: () => now },
    log,
  });
  const answer = { outcome: "answered", status: 500, reason: null, retryAfter: null } as const;
  const fail = () =>
    events.emit({ kind: "asked", call: "publish", organisationId: "org1", isTrial: false, answer, tookMs: 1 });
  fail();
  now -= 3_600_000;
  for (let times = 0; times < 4; times += 1) {
    fail();
    now += 5_000;
  }
  expect(alerts).toEqual(["webhook_failing"]);
});
