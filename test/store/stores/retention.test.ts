// Old records are removed, by index and in portions; others are kept.
import { type Kysely, sql } from "kysely";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitingEvents } from "../../../ts/publish/webhook/outbox/waiting.ts";
import { oldestDeliveries } from "../../../ts/store/delivery-size.ts";
import { KINDS, keepPruned, prune } from "../../../ts/store/retention.ts";
import type { Schema } from "../../../ts/store/schema.ts";
import { openStage, STREAM, type Stage, until } from "../../support/publishing.ts";
import { stepsOf } from "../../support/query-plans.ts";
import { ON_POSTGRES } from "../../support/stores.ts";

const DAY_MS = 86_400_000;
const DAYS = { publishes: 90, audit: 400, deliveries: 30, denied: 7 };
/** More than one portion. */
const OLD = 450;

let stage: Stage;
let db: Kysely<Schema>;
let now: number;
beforeEach(async () => {
  stage = await openStage({ webhook: null, ca: null });
  db = stage.db;
  now = stage.clock.ms;
});
afterEach(() => stage.close());

async function addPublish(clientId: number, state: "denied" | "ended" | "live", daysAgo: number): Promise<void> {
  const at = now - daysAgo * DAY_MS;
  const asked = {
    client_id: clientId,
    organisation_id: "org1",
    stream_id: `stream ${STREAM}`,
    name: STREAM,
    app: "live",
  };
  const told = { arguments: "passcode=s3cret", address: "203.0.113.7", webhook: null, end_reason: null };
  const times = { asked_at: at, accepted_at: null, ended_at: state === "live" ? null : at };
  await db
    .insertInto("publish")
    .values({ ...asked, ...told, ...times, state, bytes_in: 0, bytes_out: 0 })
    .execute();
}

async function addEvent(id: string, daysAgo: number, done: "delivered_at" | "given_up_at" | null): Promise<void> {
  const at = now - daysAgo * DAY_MS;
  const values = { id, organisation_id: "org1", client_id: 1, url: "https://a.example/", body: "call=publish_done" };
  await db
    .insertInto("outbox")
    .values({ ...values, next_attempt_at: at, created_at: at, ...(done === null ? {} : { [done]: at }) })
    .execute();
}

test("publishes are removed after 90 days, and personal data of denied ones after seven", async () => {
  for (let n = 0; n < OLD; n += 1) await addPublish(n, "ended", 91);
  await addPublish(1_000, "ended", 89);
  await addPublish(1_001, "live", 300);
  await addPublish(1_002, "denied", 8);
  await addPublish(1_003, "denied", 6);
  expect(await prune(db, DAYS, now)).toBe(OLD + 1);
  const left = await db
    .selectFrom("publish")
    .select(["client_id", "address", "arguments"])
    .orderBy("client_id")
    .execute();
  expect(left.map((row) => [Number(row.client_id), row.address, row.arguments])).toEqual([
    [1_000, "203.0.113.7", "passcode=s3cret"],
    [1_001, "203.0.113.7", "passcode=s3cret"],
    [1_002, "", null],
    [1_003, "203.0.113.7", "passcode=s3cret"],
  ]);
});

test("a clock that is years ahead at the start, and set right soon, removes nothing that is young", async () => {
  await addPublish(1, "ended", 1);
  await addPublish(2, "ended", 91);
  const clock = { ms: now + 3_650 * DAY_MS, now: () => clock.ms };
  const log = pino({ level: "silent" });
  const stop = keepPruned({ db, days: () => DAYS, clock, log, firstPassMs: 1, passEveryMs: 1 });
  clock.ms = now;
  const left = async () => (await db.selectFrom("publish").select("client_id").execute()).map((row) => row.client_id);
  await until(async () => (await left()).length === 1);
  await stop();
  expect((await left()).map(Number)).toEqual([1]);
});

test("events are removed 30 days after they were delivered or given up, and waiting ones never", async () => {
  await addEvent("delivered", 31, "delivered_at");
  await addEvent("given up", 31, "given_up_at");
  await addEvent("fresh", 29, "delivered_at");
  await addEvent("waiting", 300, null);
  await prune(db, DAYS, now);
  const left = await db.selectFrom("outbox").select("id").orderBy("id").execute();
  expect(left.map(({ id }) => id)).toEqual(["fresh", "waiting"]);
});

test("webhook calls with their bodies are removed after 30 days", async () => {
  for (const daysAgo of [31, 29]) {
    const at = now - daysAgo * DAY_MS;
    const call = { call: "publish", name: STREAM, url: "https://a.example/", body: "call=publish" } as const;
    const told = { outcome: "answered", status: 200, reason: null, latency_ms: 1, attempts: 1, bytes: 400 };
    await db
      .insertInto("delivery")
      .values({
        id: `msg_${daysAgo}`,
        organisation_id: "org1",
        client_id: 1,
        ...call,
        ...told,
        first_at: at,
        last_at: at,
      })
      .execute();
  }
  await prune(db, DAYS, now);
  expect(await db.selectFrom("delivery").select("id").execute()).toEqual([{ id: "msg_29" }]);
});

test("audit entries are removed after 400 days", async () => {
  for (const daysAgo of [401, 399]) {
    const at = now - daysAgo * DAY_MS;
    const id = `${String(at).padStart(14, "0")}000000000000`;
    const what = { action: "stream.create", subject: "x", detail: "{}", request_id: null };
    await db
      .insertInto("audit")
      .values({ id, organisation_id: "org1", at, who_kind: "operator", who_id: null, ...what })
      .execute();
  }
  await prune(db, DAYS, now);
  expect(await db.selectFrom("audit").select("id").execute()).toHaveLength(1);
});

test("the row of a node is removed a day after it died or was stopped, and never while others rely on it", async () => {
  const day = 24;
  for (const [epoch, state, startedAgo, beatAgo] of [
    [11, "lost", 30 * day, day + 1],
    [12, "stopped", 30 * day, day + 1],
    [13, "lost", 30 * day, day - 1], // ran for a month, died today
    [14, "stopped", day - 1, day - 2],
    [15, "up", 30 * day, 29 * day], // of an embedded store: has no heartbeats
    [16, "draining", 30 * day, 29 * day],
  ] as const) {
    const hours = (ago: number) => now - ago * 3_600_000;
    const told = { name: `node ${epoch}`, version: "0.1.0", status: "{}", beats: 7 };
    await db
      .insertInto("node")
      .values({ ...told, epoch, state, started_at: hours(startedAgo), beat_at: hours(beatAgo) })
      .execute();
  }
  await prune(db, DAYS, now);
  const left = await db.selectFrom("node").select("epoch").where("epoch", ">", 10).orderBy("epoch").execute();
  expect(left.map(({ epoch }) => Number(epoch))).toEqual([13, 14, 15, 16]);
});

test("the row of a token is removed 30 days after it expired", async () => {
  const token = { organisation_id: "org1", kind: "play", name: "n", made_by_kind: "operator", made_by: "" } as const;
  const none = { revision: 0, last_used_at: null, revoked_at: null };
  for (const days of [29, 31]) {
    const row = { id: `expired for ${days} days`, made_at: 0, expires_at: now - days * 86_400_000 };
    await db
      .insertInto("token")
      .values({ ...token, ...none, ...row })
      .execute();
  }
  await prune(db, { publishes: 90, audit: 400, deliveries: 30, denied: 7 }, now);
  expect(await db.selectFrom("token").select("id").execute()).toEqual([{ id: "expired for 29 days" }]);
});

test("0 keeps a kind forever", async () => {
  await addPublish(1, "denied", 5_000);
  await prune(db, { publishes: 0, audit: 0, deliveries: 0, denied: 0 }, now);
  expect(await db.selectFrom("publish").select("address").execute()).toEqual([{ address: "203.0.113.7" }]);
});

/** Enough rows of each kind that reading them all would cost more than using their index. */
const MANY = 10_000;

async function addMany(): Promise<void> {
  const numbers = sql`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${MANY})`;
  for (const rows of [
    sql`insert into publish (client_id, organisation_id, stream_id, name, app, address, state, asked_at, ended_at,
        bytes_in, bytes_out) ${numbers} select n, 'org1', ${`stream ${STREAM}`}, 'n', 'live', '203.0.113.7',
        case when n % 2 = 0 then 'denied' else 'ended' end, n, n, 0, 0 from numbers`,
    sql`insert into delivery (id, organisation_id, client_id, call, name, url, body, outcome, latency_ms, attempts,
        first_at, last_at, bytes) ${numbers} select 'msg_' || n, 'org1', n, 'publish', 'n', 'u', 'b', 'answered', 1, 1,
        n, n, 400 from numbers`,
    ...["outbox", "webhook_copy_outbox"].map(
      (
        table,
      ) => sql`insert into ${sql.table(table)} (id, organisation_id, client_id, url, body, next_attempt_at, created_at,
        delivered_at, given_up_at) ${numbers} select 'msg_' || n, 'org1', n, 'u', 'b', n, n, case when n % 3 = 0 then n end,
        case when n % 3 = 1 then n end from numbers`,
    ),
    sql`insert into audit (id, organisation_id, at, who_kind, action, subject, detail) ${numbers}
        select 'a' || n, 'org1', n, 'operator', 'x', 'x', '{}' from numbers`,
    sql`insert into kept_answer (id, organisation_id, sealed, begun_at) ${numbers}
        select 'k' || n, 'org1', 's', n from numbers`,
    sql`insert into refusal (id, organisation_id, request, protocol, reason, address, count, first_at, last_at) ${numbers}
        select 'r' || n, 'org1', 'publish', 'rtmp', 'full', '203.0.113.7', 1, n, n from numbers`,
    sql`insert into token (id, organisation_id, kind, name, made_by_kind, made_by, revision, made_at, expires_at) ${numbers}
        select 't' || n, 'org1', 'play', 'n', 'operator', '', 0, n, n from numbers`,
    sql`insert into node (epoch, name, state, beats, beat_at, started_at, version, status) ${numbers}
        select 100 + n, 'n', 'lost', 1, n, n, '0.1.0', '{}' from numbers`,
  ]) {
    await rows.execute(db);
  }
  if (ON_POSTGRES) await sql`analyze`.execute(db);
}

test("no statement reads a whole table or index, whose cost would grow with the stored data", async () => {
  await addMany();
  for (const kind of KINDS) {
    const steps = await stepsOf(db, kind.portion(db, now));
    expect(steps.length).toBeGreaterThanOrEqual(2);
    for (const { reads } of steps) expect(reads, `${kind.name}: ${JSON.stringify(steps)}`).toMatch(/^index /);
  }
}, 60_000);

test("the number of waiting events, and the oldest one's age, are read from their index alone", async () => {
  await addMany();
  const steps = await stepsOf(db, waitingEvents(db).compile());
  const ofOutbox = steps.filter(({ table }) => table === "outbox");
  expect(ofOutbox).toEqual([{ table: "outbox", reads: "whole index outbox_age" }]);
}, 60_000);

test("the oldest deliveries of an organisation are read first from their index", async () => {
  await addMany();
  const steps = await stepsOf(db, oldestDeliveries(db));
  const byId = ON_POSTGRES ? "index delivery_pkey" : "index sqlite_autoindex_delivery_1";
  const ofDeliveries = steps.filter(({ table }) => table === "delivery").map(({ reads }) => reads);
  expect(ofDeliveries.sort()).toEqual(["index delivery_newest", byId]);
  // Only the shares are sorted.
  expect(steps.filter(({ reads }) => reads === "sorted")).toHaveLength(2);
}, 60_000);
