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
async function openRecords(asked = () => {}) {
  const { db, clock, service } = stage;
  const customer = await service.customers.of("org1");
  const lines: string[] = [];
  const records = createAlertRecords({
    db,
    member: { epoch: 1 },
    customers: {
      async of() {
        asked();
        return { ...customer, copies: COPIES };
      },
    },
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
  const rows = await db.selectFrom("webhook_copy_outbox").select("body").orderBy("id").execute();
  const sent = rows.map(({ body }) => new URLSearchParams(body).get("event"));
  expect(sent.toSorted()).toEqual(events.toSorted());
  expect(lines).toHaveLength(1);
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
