// Requests with an Idempotency-Key, on both stores: executed once, answered alike, and their secrets sealed.
import { afterEach, beforeEach, expect, test } from "vitest";
import { prune } from "../../../ts/store/retention.ts";
import { type Answer, type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

const KEY = "order-4711";
const DAY_MS = 86_400_000;

async function post(path: string, body: unknown, key = KEY): Promise<Answer> {
  return await gateway.call("POST", path, { body, headers: { "idempotency-key": key } });
}

const newStream = (tags: readonly string[] = [], key = KEY) => post("/stream", { tags }, key);
const streams = async () => (await gateway.call("GET", "/stream")).body as readonly object[];

test("a stream is created once and answered alike, and the repeated answer says so", async () => {
  const first = await newStream();
  gateway.clock.ms += 1_000;
  const second = await newStream();
  expect([second.status, second.body]).toStrictEqual([200, first.body]);
  expect(second.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect([first, second].map(({ headers }) => headers.get("idempotency-replayed"))).toEqual([null, "true"]);
  expect(await streams()).toHaveLength(1);
});

test("another body or another address with the same key is refused", async () => {
  await newStream();
  const refusal = { status: 409, body: { error: { code: 9409, userinfo: {} } } };
  expect(await newStream(["other"])).toMatchObject(refusal);
  expect(await post("/organisation/webhook/secret", { tags: [] })).toMatchObject(refusal);
  expect(await streams()).toHaveLength(1);
});

test("an Idempotency-Key belongs to one caller, and is valid for a day", async () => {
  const first = await newStream();
  const other = await gateway.call("POST", "/stream", {
    key: gateway.keys.user,
    body: { tags: [] },
    headers: { "idempotency-key": KEY },
  });
  expect(other.body).not.toEqual(first.body);
  gateway.clock.ms += DAY_MS;
  expect((await newStream()).headers.get("idempotency-replayed")).toBe(null);
  expect(await streams()).toHaveLength(3);
});

test("a new API key is returned again, and is nowhere in the store", async () => {
  const first = await post("/organisation/key", { role: "user" });
  expect((await post("/organisation/key", { role: "user" })).body).toStrictEqual(first.body);
  const { key } = first.body as { readonly key: string };
  const kept = await gateway.db.selectFrom("kept_answer").selectAll().execute();
  expect(kept).toHaveLength(1);
  expect(JSON.stringify(kept)).not.toContain(key);
  expect(gateway.log()).not.toContain(key);
});

test("of concurrent requests one is executed, and the others get its answer or are told to retry", async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => newStream()));
  expect(await streams()).toHaveLength(1);
  for (const { status, body, headers } of answers) {
    if (status === 200) expect(body).toStrictEqual((await newStream()).body);
    else {
      expect({ status, body }).toMatchObject({ status: 409, body: { error: { code: 9410 } } });
      expect(headers.get("retry-after")).toBe("1");
    }
  }
  expect(answers.some(({ status }) => status === 200)).toBe(true);
});

test("a refused request stores nothing, and an interrupted one is executed again after a minute", async () => {
  const bad = await post("/organisation/user", { email: "a@b.example", password: "long enough for all", role: "root" });
  expect(bad.status).toBe(400);
  expect(await gateway.db.selectFrom("kept_answer").selectAll().execute()).toEqual([]);
  await newStream();
  await gateway.db.updateTable("kept_answer").set({ sealed: null }).execute();
  expect((await newStream()).status).toBe(409);
  gateway.clock.ms += 60_000;
  expect((await newStream()).status).toBe(200);
  expect(await streams()).toHaveLength(2);
});

test.each(["", "k".repeat(256)])("a key of %j is refused by name", async (key) => {
  const error = { code: 9002, userinfo: { parameter: "Idempotency-Key", reason: "must have 1 to 255 characters" } };
  expect(await newStream([], key)).toMatchObject({ status: 400, body: { error } });
});

test("stored answers are removed after a day", async () => {
  await newStream();
  const days = { publishes: 0, audit: 0, deliveries: 0, denied: 0 };
  await prune(gateway.db, days, gateway.clock.ms + DAY_MS);
  expect(await gateway.db.selectFrom("kept_answer").selectAll().execute()).toHaveLength(1);
  await prune(gateway.db, days, gateway.clock.ms + DAY_MS + 1);
  expect(await gateway.db.selectFrom("kept_answer").selectAll().execute()).toEqual([]);
});

test("web tokens are issued once as well, and refusals have the token service's form", async () => {
  const subject = { streamname: "n", ingesturl: "rtmp://a.example/live" };
  const first = await post("/webcaster", subject);
  gateway.clock.ms += 5_000;
  expect((await post("/webcaster", subject)).body).toStrictEqual(first.body);
  const refusal = await post("/webcaster", { ...subject, streamname: "m" });
  expect(refusal).toMatchObject({ status: 409, body: { success: false, errorCode: 9409 } });
});
