// What one organisation can write is bounded, table by table and route by route, and the refusal says what to do.
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recordChange } from "../../../ts/organisation/audit.ts";
import { SESSIONS_LIMIT } from "../../../ts/organisation/logins.ts";
import { hashPassword } from "../../../ts/organisation/passwords.ts";
import { ROUTES, type RouteName } from "../../../ts/organisation/roles.ts";
import { changeOfTags } from "../../../ts/organisation/streams.ts";
import { prune } from "../../../ts/store/retention.ts";
import { excessAudit, largestHolders, TABLE_BOUNDS } from "../../../ts/store/table-bounds.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { fill, PASSWORD, requestOf } from "../../support/inventory.ts";
import { ON_POSTGRES } from "../../support/stores.ts";
import { onOneStore } from "../../support/whole-run.ts";

const REFUSED = ["stream", "kept_answer", "api_key"] as const;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

const shareOf = (table: string) =>
  gateway.db
    .selectFrom("table_share")
    .select(["rows", "bytes"])
    .where("organisation_id", "=", gateway.organisation.id)
    .where("table_name", "=", table)
    .executeTakeFirst()
    .then((share) => ({ rows: Number(share?.rows ?? 0), bytes: Number(share?.bytes ?? 0) }));

async function setShare(table: string, share: { readonly rows: number; readonly bytes: number }): Promise<void> {
  const [organisation_id, { rows, bytes }] = [gateway.organisation.id, share];
  await sql`
    insert into table_share (organisation_id, table_name, rows, bytes) values (${organisation_id}, ${table}, ${rows}, ${bytes})
    on conflict (organisation_id, table_name) do update set rows = excluded.rows, bytes = excluded.bytes
  `.execute(gateway.db);
}

const countOf = async (table: (typeof REFUSED)[number]) =>
  (await gateway.db.selectFrom(table).select("id").where("organisation_id", "=", gateway.organisation.id).execute())
    .length;

test("every table of the store has a bound for each organisation, or a reason why it needs none", async () => {
  const { rows } = await (ON_POSTGRES
    ? sql<{ name: string }>`select table_name as name from information_schema.tables where table_schema = 'public'`
    : sql<{ name: string }>`select name from sqlite_master where type = 'table'`
  ).execute(gateway.db);
  const tables = rows.map(({ name }) => name);
  const own = tables.filter((name) => !/^(migration|sqlite|libsql)/.test(name));
  expect(Object.keys(TABLE_BOUNDS).toSorted()).toEqual(own.toSorted());
  for (const bound of Object.values(TABLE_BOUNDS)) {
    expect(bound.by === "count" ? bound.remedy : bound.why).toMatch(/\w+ \w+/);
  }
});

onOneStore.test("no route adds to a table of which the organisation has as much as it may", async () => {
  const owned = await fill(gateway, gateway);
  for (const table of REFUSED) await setShare(table, { rows: TABLE_BOUNDS[table].rows, bytes: 0 });
  const counts = () => Promise.all(REFUSED.map(countOf));
  const before = await counts();
  for (const route of Object.keys(ROUTES) as RouteName[]) {
    if (route.startsWith("GET ") || ROUTES[route] === "anyone") continue;
    const { method, path, body } = requestOf(route, owned);
    for (const headers of [{}, { "idempotency-key": `key ${route}` }]) {
      await gateway.call(method, path, { body, headers });
      expect({ route, counts: await counts() }).toEqual({ route, counts: before });
    }
  }
});

onOneStore.test.each([
  ["stream", "rows", "/stream", {}],
  ["stream", "bytes", "/stream", {}],
  ["api_key", "rows", "/organisation/key", {}],
  ["kept_answer", "bytes", "/stream", { "idempotency-key": "another" }],
  ["kept_answer", "rows", "/organisation/key", { "idempotency-key": "another" }],
] as const)("a full %s (%s) is refused by %s in words", async (table, what, path, headers) => {
  const full = { rows: 0, bytes: 0, [what]: TABLE_BOUNDS[table][what] };
  await setShare(table, full);
  const answer = await gateway.call("POST", path, { body: { role: "user" }, headers });
  expect(answer.status).toBe(400);
  const text = JSON.stringify(answer.body);
  expect(text).toContain("exceeds the limit of");
  expect(text).toContain(TABLE_BOUNDS[table].remedy.slice(0, 20));
});

onOneStore.test("an answer that is kept is repeated even when no further one can be kept", async () => {
  const post = (key: string) => gateway.call("POST", "/stream", { body: {}, headers: { "idempotency-key": key } });
  const first = await post("first");
  await setShare("kept_answer", { rows: 0, bytes: TABLE_BOUNDS.kept_answer.bytes });
  expect((await post("first")).body).toEqual(first.body);
  expect((await post("second")).status).toBe(400);
  expect(await countOf("stream")).toBe(1);
});

/** Fifty requests at the same moment; resolves with the numbers of those done and of those refused for lack of room. */
async function fifty(ask: (at: number) => ReturnType<Gateway["call"]>): Promise<readonly [number, number]> {
  const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => ask(at)));
  const refused = answers.filter(({ body }) => JSON.stringify(body).includes("exceeds the limit of"));
  return [answers.filter(({ status }) => status === 200).length, refused.length];
}

describe("of fifty requests at the same moment, only as many as there is room for", () => {
  test("create streams", async () => {
    await setShare("stream", { rows: TABLE_BOUNDS.stream.rows - 7, bytes: 0 });
    expect(await fifty(() => gateway.call("POST", "/stream", { body: {} }))).toEqual([7, 43]);
    expect(await shareOf("stream")).toMatchObject({ rows: TABLE_BOUNDS.stream.rows });
  });

  test("create streams in bytes", async () => {
    const tags = Array.from({ length: 50 }, (_, at) => `${at}${"x".repeat(90)}`);
    const size = 300 + JSON.stringify(tags).length;
    await setShare("stream", { rows: 0, bytes: TABLE_BOUNDS.stream.bytes - 3 * size + 1 });
    expect(await fifty(() => gateway.call("POST", "/stream", { body: { tags } }))).toEqual([3, 47]);
  });

  test("give streams more tags, however many streams there are; fewer are always possible", async () => {
    const streams = await Promise.all(
      Array.from({ length: 50 }, async () => (await gateway.call("POST", "/stream", { body: {} })).body),
    );
    const tagged = (at: number, tags: readonly string[]) =>
      gateway.call("PUT", `/stream/${(streams[at] as { id: string }).id}/tag`, { body: { tags } });
    const size = JSON.stringify(["x".repeat(98)]).length - 2;
    const rows = TABLE_BOUNDS.stream.rows + 1;
    await setShare("stream", { rows, bytes: TABLE_BOUNDS.stream.bytes - 4 * size });
    expect(await fifty((at) => tagged(at, ["x".repeat(98)]))).toEqual([4, 46]);
    expect(await fifty((at) => tagged(at, []))).toEqual([50, 0]);
  });

  test("create keys, or replace them", async () => {
    await setShare("api_key", { rows: TABLE_BOUNDS.api_key.rows - 5, bytes: 0 });
    const create = () => gateway.call("POST", "/organisation/key", { body: { role: "user" } });
    const id = gateway.keys.user.slice(3, 11);
    const rotate = () => gateway.call("POST", `/organisation/key/${id}/rotate`);
    expect(await fifty((at) => (at % 2 === 0 ? create() : rotate()))).toEqual([5, 45]);
  });

  test("have their answers kept", async () => {
    await setShare("kept_answer", { rows: TABLE_BOUNDS.kept_answer.rows - 6, bytes: 0 });
    const ask = (at: number) =>
      gateway.call("POST", "/stream", { body: {}, headers: { "idempotency-key": `key ${at}` } });
    const [done, refused] = await fifty(ask);
    expect(done + refused).toBe(50);
    // Those on the connections of one process to PostgreSQL may have looked at the same moment.
    expect([done >= 6, done <= (ON_POSTGRES ? 6 + 10 : 6)]).toEqual([true, true]);
    expect(await countOf("stream")).toBe(done);
  });

  test("have their answers kept in bytes: each under way counts in advance, and no longer once it is done", async () => {
    await setShare("kept_answer", { rows: 0, bytes: TABLE_BOUNDS.kept_answer.bytes - 450_000 });
    const ask = (at: number) =>
      gateway.call("POST", "/stream", { body: {}, headers: { "idempotency-key": `key ${at}` } });
    const [done] = await fifty(ask);
    expect(done).toBeLessThanOrEqual(4);
    for (let at = 50; at < 60; at += 1) expect((await ask(at)).status).toBe(200);
    expect((await ask(59)).headers.get("idempotency-replayed")).toBe("true");
  });
});

test("rows and bytes are counted as they are added, changed and removed", async () => {
  const { db } = gateway;
  await gateway.call("POST", "/stream", { body: {}, headers: { "idempotency-key": "a" } });
  const [stream, kept] = [await shareOf("stream"), await shareOf("kept_answer")];
  expect([stream.rows, kept.rows]).toEqual([1, 1]);
  await db
    .updateTable("stream")
    .set({ tags: JSON.stringify(["x".repeat(98)]) })
    .execute();
  expect(await shareOf("stream")).toEqual({ rows: 1, bytes: stream.bytes + 100 });
  await db.updateTable("stream").set({ state: "ended" }).execute();
  expect(await shareOf("stream")).toEqual({ rows: 1, bytes: stream.bytes + 100 });
  await db.deleteFrom("kept_answer").execute();
  expect(await shareOf("kept_answer")).toEqual({ rows: 0, bytes: 0 });
  const [largest] = await largestHolders(db, 5);
  expect(largest?.bytes).toBeGreaterThan(stream.bytes);
});

onOneStore.test("the audit log keeps how tags differ, and no long value", async () => {
  const former = Array.from({ length: 50 }, (_, at) => `${String(at).padStart(2, "0")}${"x".repeat(98)}`);
  const created = await gateway.call("POST", "/stream", { body: { tags: former } });
  const { id } = created.body as { id: string };
  await gateway.call("PUT", `/stream/${id}/tag`, { body: { tags: [...former.slice(1), "new"] } });
  await gateway.call("PUT", `/stream/${id}/tag`, { body: { tags: [] } });
  const rows = await gateway.db.selectFrom("audit").select(["action", "detail"]).orderBy("id").execute();
  const details = rows.filter(({ action }) => action.startsWith("stream.")).map(({ detail }) => detail);
  expect(JSON.parse(details[1] ?? "")).toEqual({ tags: 50, added: ["new"], removed: [former[0]] });
  for (const detail of details) expect(detail.length).toBeLessThan(1_000);
  const actor = { organisation: gateway.organisation, who: { kind: "operator", id: null }, requestId: null } as const;
  await recordChange(gateway.db, actor, 0, { action: "a", subject: "b", detail: { long: "x".repeat(20_000) } });
  const { bytes } = await shareOf("audit");
  expect(bytes).toBeLessThan(5_000);
});

onOneStore.test("tags that stay are not in the difference", () => {
  expect(changeOfTags({ tags: '["a","b"]' }, ["b", "c"])).toEqual({ tags: 2, added: ["c"], removed: ["a"] });
  expect(changeOfTags({ tags: '["a","b"]' }, ["b", "a"])).toEqual({ tags: 2 });
});

test("the oldest audit entries of an organisation with too many are removed, and nobody else's", async () => {
  const { db, organisation, clock } = gateway;
  const other = { ...organisation, id: "other", hash: "other", name: "Other" };
  const times = { plan: "paid", enabled: 1, created_at: 0, updated_at: 0 } as const;
  await db
    .insertInto("organisation")
    .values({ id: other.id, hash: other.hash, name: other.name, ...times })
    .execute();
  for (const of of [other, organisation]) {
    for (let at = 0; at < 30; at += 1) {
      const actor = { organisation: of, who: { kind: "operator", id: null }, requestId: null } as const;
      await recordChange(db, actor, clock.ms + at, { action: "a", subject: `${at}` });
    }
  }
  await setShare("audit", { rows: TABLE_BOUNDS.audit.rows + 25, bytes: 0 });
  await db.executeQuery(excessAudit(db));
  const left = await db.selectFrom("audit").select(["organisation_id", "subject"]).orderBy("id").execute();
  const of = (id: string) => left.filter(({ organisation_id }) => organisation_id === id).map(({ subject }) => subject);
  expect([of(organisation.id), of("other").length]).toEqual([["25", "26", "27", "28", "29"], 30]);
  await prune(db, { publishes: 0, audit: 0, deliveries: 0, denied: 0 }, clock.ms);
  expect(of(organisation.id)).toHaveLength(5);
});

onOneStore.test("a person has at most a hundred sessions: the one used longest ago ends", async () => {
  const { db } = gateway;
  const person = {
    id: "ada",
    organisation_id: gateway.organisation.id,
    email: "ada@customer.example",
    role: "user",
  } as const;
  await db
    .insertInto("person")
    .values({ ...person, password_hash: await hashPassword(PASSWORD), created_at: 0, updated_at: 0 })
    .execute();
  const seen = gateway.clock.ms - 1_000;
  const sessions = Array.from({ length: SESSIONS_LIMIT }, (_, at) => ({
    ...{ hash: `session ${at}`, person_id: "ada", created_at: seen, last_seen_at: seen + at },
  }));
  await db.insertInto("person_session").values(sessions).execute();
  const login = await gateway.call("POST", "/login", { key: null, body: { email: person.email, password: PASSWORD } });
  expect(login.status).toBe(200);
  const left = await db.selectFrom("person_session").select("hash").execute();
  expect(left).toHaveLength(SESSIONS_LIMIT);
  expect(left.map(({ hash }) => hash)).not.toContain("session 0");
});
