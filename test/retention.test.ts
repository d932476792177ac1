// What is old is removed, by index and in portions; what is not stays.
import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KINDS, prune } from "../ts/store/retention.ts";
import type { Schema } from "../ts/store/schema.ts";
import { openStage, STREAM, type Stage } from "./support/publishing.ts";

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

test("publishes go after 90 days, and what denied ones tell of people after seven", async () => {
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

test("events go 30 days after they were delivered or given up, and those that wait never", async () => {
  await addEvent("delivered", 31, "delivered_at");
  await addEvent("given up", 31, "given_up_at");
  await addEvent("fresh", 29, "delivered_at");
  await addEvent("waiting", 300, null);
  await prune(db, DAYS, now);
  const left = await db.selectFrom("outbox").select("id").orderBy("id").execute();
  expect(left.map(({ id }) => id)).toEqual(["fresh", "waiting"]);
});

test("webhook calls with their bodies go after 30 days", async () => {
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

test("the audit log goes after 400 days", async () => {
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

test("0 keeps a kind for ever", async () => {
  await addPublish(1, "denied", 5_000);
  await prune(db, { publishes: 0, audit: 0, deliveries: 0, denied: 0 }, now);
  expect(await db.selectFrom("publish").select("address").execute()).toEqual([{ address: "203.0.113.7" }]);
});

test.runIf(process.env.TEST_STORE !== "postgres").each(KINDS)(
  "no statement for $name reads a whole table",
  async (kind) => {
    const { sql: text, parameters } = kind.portion(db, now);
    const explained = sql.raw<{ detail: string }>(`explain query plan ${text.replaceAll("?", () => "1")}`);
    expect(parameters.length).toBeGreaterThan(0);
    const { rows } = await explained.execute(db);
    const steps = rows.map(({ detail }) => detail);
    expect(
      steps.filter((step) => step.startsWith("SCAN")),
      steps.join("; "),
    ).toEqual([]);
  },
);
