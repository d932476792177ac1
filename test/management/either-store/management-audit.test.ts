// The audit log and the usage of an organisation: what changed and who did it; how many bytes flowed,
// exactly.
import { afterEach, beforeEach, expect, test } from "vitest";
import { recordBytes, recordEnd, recordIntent, recordLive } from "../../../ts/publish/record.ts";
import { newTrace } from "../../../ts/tracing/trace.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { fill } from "../../support/inventory.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

interface Entry {
  readonly id: string;
  readonly action: string;
  readonly subject: string;
  readonly detail: object;
  readonly who: object;
  readonly request_id: string;
}
const audit = async (query = "") => (await gateway.call("GET", `/organisation/audit${query}`)).body as Entry[];

test("every change is logged once, with who, when and the request, and without secrets", async () => {
  const { call } = gateway;
  const stream = await call("POST", "/stream", { key: gateway.keys.user, body: { tags: ["a"] } });
  const { id, ingest } = stream.body as { id: string; ingest: { rtmp: { streamname: string } } };
  for (const what of ["stop", "unlock", "lock", "unlock"]) await call("PUT", `/stream/${id}/${what}`);
  await call("PUT", `/stream/${id}/tag`, { body: { tags: ["b"] } });
  await call("PUT", "/organisation/webhook", { body: { webhook: "https://customer.example/hook?secret=s3cret" } });
  await call("DELETE", "/organisation/webhook");
  const key = (await call("POST", "/organisation/key", { body: { role: "user" } })).body as { id: string; key: string };
  await call("POST", `/organisation/key/${key.id}/rotate`);
  await call("DELETE", `/organisation/key/${key.id}`);
  const person = { email: "ada@customer.example", password: "correct horse battery", role: "administrator" };
  const user = (await call("POST", "/organisation/user", { body: person })).body as { id: string };
  await call("DELETE", `/stream/${id}`);

  const entries = (await audit()).reverse();
  expect(entries.map(({ action, subject }) => `${action} ${subject}`)).toEqual([
    `stream.create ${id}`,
    `stream.stop ${id}`,
    `stream.unlock ${id}`,
    `stream.lock ${id}`,
    `stream.unlock ${id}`,
    `stream.tag ${id}`,
    `webhook.set ${gateway.organisation.id}`,
    `webhook.remove ${gateway.organisation.id}`,
    `key.create ${key.id}`,
    `key.rotate ${key.id}`,
    `key.revoke ${key.id}`,
    `user.create ${user.id}`,
    `stream.delete ${id}`,
  ]);
  expect(entries[0]).toStrictEqual({
    id: entries[0]?.id,
    at: "2026-01-01T00:00:00.000Z",
    who: { kind: "key", id: gateway.keys.user.split("_")[1] },
    action: "stream.create",
    subject: id,
    stream: { id, name: expect.stringMatching(/^[\w]{5}-/), title: null },
    detail: { name: ingest.rtmp.streamname, tags: ["a"] },
    request_id: stream.headers.get("x-request-id"),
  });
  const text = JSON.stringify(entries);
  for (const secret of ["s3cret", person.password, key.key.slice(12)]) expect(text).not.toContain(secret);
});

test("refused requests are not logged, and other organisations' changes are not visible", async () => {
  await gateway.call("POST", "/stream", { key: gateway.keys.readonly });
  await gateway.call("POST", "/stream", { body: { tags: "x" } });
  await gateway.call("PUT", "/stream/none/lock");
  const { keys } = await gateway.newOrganisation("Second");
  await gateway.call("POST", "/stream", { key: keys.administrator });
  expect(await audit()).toEqual([]);
});

test("a change that cannot be recorded is not made", async () => {
  const { call, db } = gateway;
  const { id } = (await call("POST", "/stream")).body as { id: string };
  const upstreams = `/stream/${id}/upstream`;
  const url = "rtmp://customer.example/live/key";
  const upstream = (await call("POST", upstreams, { body: { url } })).body as { id: string };
  const user = { email: "ada@customer.example", password: "correct horse battery", role: "user" };
  const person = (await call("POST", "/organisation/user", { body: user })).body as { id: string };
  const key = (await call("POST", "/organisation/key", { body: { role: "user" } })).body as { id: string };
  const tables = ["organisation", "organisation_setting", "webhook_secret", "stream", "stream_upstream"] as const;
  const more = ["token_revocation", "person", "outbox"] as const;
  const everything = async () => [
    await Promise.all([...tables, ...more].map((table) => db.selectFrom(table).selectAll().execute())),
    await db.selectFrom("api_key").select(["id", "role", "expires_at", "revoked_at"]).execute(),
  ];
  const before = await everything();
  await db.schema.dropTable("audit").execute();
  const changes: readonly (readonly [method: string, path: string, body?: object])[] = [
    ["POST", "/organisation/webhook/secret"],
    ["PUT", "/organisation/settings", { strict_arguments: true }],
    ["POST", upstreams, { url: `${url}2` }],
    ["DELETE", `${upstreams}/${upstream.id}`],
    ["POST", "/webcaster/revoke", { jti: "some" }],
    ["DELETE", "/organisation/webhook"],
    ["POST", "/stream"],
    ["PUT", `/stream/${id}/tag`, { tags: ["a"] }],
    ["PUT", `/stream/${id}/stop`],
    ["DELETE", `/stream/${id}`],
    ["POST", "/organisation/key", { role: "user" }],
    ["POST", `/organisation/key/${key.id}/rotate`],
    ["DELETE", `/organisation/key/${key.id}`],
    ["POST", "/organisation/user", { ...user, email: "bob@customer.example" }],
    ["PUT", `/organisation/user/${person.id}`, { role: "readonly" }],
    ["DELETE", `/organisation/user/${person.id}`],
  ];
  for (const [method, path, body] of changes) {
    const { status } = await call(method, path, body === undefined ? {} : { body });
    expect(`${method} ${path}: ${status}`).toBe(`${method} ${path}: 503`);
  }
  expect(await everything()).toEqual(before);
});

const NEW_UPSTREAM = "rtmp://b.example/live/key";

test.each([
  ["POST", "/session/{client_id}/upstream", { url: NEW_UPSTREAM }, `addUpstream {client_id} ${NEW_UPSTREAM}`],
  ["DELETE", "/session/{client_id}/upstream/7", {}, "removeUpstream {client_id} 7"],
  ["PUT", "/session/{client_id}/bitrate", { max_bitrate_kbps: 500 }, "limitBitrate {client_id} 500"],
  ["PUT", "/stream/{id}/switch", {}, "switchTo {client_id}"],
])(
  "%s %s has no effect while it cannot be recorded, and one when it is repeated",
  async (method, path, body, effect) => {
    const { call, db, live } = gateway;
    const { stream, clientId } = await fill(gateway, gateway);
    const filled = (text: string) => text.replace("{client_id}", String(clientId)).replace("{id}", stream.id);
    const request = () => call(method, filled(path), { body, headers: { "idempotency-key": "change-1" } });
    const before = await audit();
    await db.schema.alterTable("audit").renameTo("audit_elsewhere").execute();
    expect(await request()).toMatchObject({ status: 503 });
    expect(live.calls).toEqual([]);
    await db.schema.alterTable("audit_elsewhere").renameTo("audit").execute();
    expect(await request()).toMatchObject({ status: 200 });
    expect(live.calls).toEqual([filled(effect)]);
    expect(await audit()).toHaveLength(before.length + 1);
  },
);

test("the log is read in pages, newest first", async () => {
  for (let streams = 0; streams < 5; streams += 1) await gateway.call("POST", "/stream");
  const all = await audit();
  const pages: unknown[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await gateway.call("GET", `/organisation/audit?quantity=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
    pages.push(...(page.body as readonly object[]));
    cursor = page.headers.get("x-next-cursor");
  }
  expect(pages).toEqual(all);
  expect(await gateway.call("GET", "/organisation/audit?cursor=x")).toMatchObject({ status: 400 });
  expect(await gateway.call("GET", "/organisation/audit?quantity=0")).toMatchObject({ status: 400 });
});

test("the log can be filtered by action, by the first part of an action, and by who made it", async () => {
  await gateway.call("POST", "/stream");
  await gateway.call("POST", "/stream", { key: gateway.keys.user });
  await gateway.call("POST", "/organisation/key", { body: { role: "user" } });
  const found = async (query: string) => (await audit(query)).map(({ action }) => action);
  expect(await found("?action=stream")).toEqual(["stream.create", "stream.create"]);
  expect(await found("?action=stream.create&quantity=1")).toEqual(["stream.create"]);
  expect(await found("?action=key")).toEqual(["key.create"]);
  const user = gateway.keys.user.split("_")[1];
  expect(await found(`?who=${user}`)).toEqual(["stream.create"]);
  expect(await found(`?who=${user}&action=key`)).toEqual([]);
  for (const nothing of ["strea", "stream_create", "%25", "_tream"])
    expect(await found(`?action=${nothing}`)).toEqual([]);
  expect(await gateway.call("GET", "/organisation/audit?action=%00")).toMatchObject({ status: 400 });
});

const DAY_MS = 86_400_000;

/** Epoch of the running service. */
async function epoch(): Promise<number> {
  return Number((await gateway.db.selectFrom("node").select("epoch").executeTakeFirstOrThrow()).epoch);
}

/** A publish that is live from now on. */
async function publish(stream: { id: string; name: string }, clientId: number, organisationId: string) {
  const intent = {
    organisationId,
    streamId: stream.id,
    webhook: "https://customer.example/",
    clientId,
    name: stream.name,
    app: "live",
    address: "203.0.113.7",
    protocol: "rtmp",
    arguments: null,
    backup: false,
    otherArguments: null,
    epoch: await epoch(),
    trace: newTrace(),
    requestedAt: gateway.clock.ms,
    sessionHash: null,
  } as const;
  expect(await recordIntent(gateway.db, intent, gateway.clock.ms)).toBe(true);
  const none = gateway.db.selectFrom("stream_upstream").selectAll().compile();
  expect(await recordLive(gateway.db, intent, gateway.clock.ms, none)).toEqual([]);
}

async function newStream(tags: readonly string[] = []) {
  const { body } = await gateway.call("POST", "/stream", { body: { tags } });
  const { id, ingest } = body as { id: string; ingest: { rtmp: { streamname: string } } };
  return { id, name: ingest.rtmp.streamname };
}

test("bytes are reported by stream and day, and sum up to those of publish_done", async () => {
  const { db, organisation, clock } = gateway;
  const [one, two] = [await newStream(["studio"]), await newStream()];
  await publish(one, 1, organisation.id);
  await publish(two, 2, organisation.id);
  const carried = { droppedFrames: 0, tracks: { video: null, audio: null } };
  const bytes = (clientId: number, bytesIn: number, bytesOut: number) => ({ clientId, bytesIn, bytesOut, ...carried });
  await recordBytes(db, [bytes(1, 100, 50), bytes(2, 7, 0)], clock.ms);
  await recordBytes(db, [bytes(1, 150, 80), bytes(2, 7, 0)], clock.ms);
  clock.ms += DAY_MS;
  await recordBytes(db, [bytes(1, 1_000, 500)], clock.ms);
  const own = { epoch: await epoch(), whose: "own" } as const;
  await recordEnd(
    db,
    1,
    { ...own, reason: "unpublished", ending: null, counters: { bytesIn: 1_100, bytesOut: 600, ...carried } },
    clock.ms,
  );
  await recordEnd(
    db,
    1,
    { ...own, reason: "unpublished", ending: null, counters: { bytesIn: 9_999, bytesOut: 9_999, ...carried } },
    clock.ms,
  );
  await recordEnd(db, 2, { ...own, reason: "gateway_restarted", ending: null, counters: null }, clock.ms);

  const usage = async (query = "") => (await gateway.call("GET", `/organisation/usage${query}`)).body;
  const days = [
    { day: "2026-01-01", stream: one.id, streamname: one.name, bytes_in: 150, bytes_out: 80 },
    { day: "2026-01-01", stream: two.id, streamname: two.name, bytes_in: 7, bytes_out: 0 },
    { day: "2026-01-02", stream: one.id, streamname: one.name, bytes_in: 950, bytes_out: 520 },
  ];
  days.sort((a, b) => a.day.localeCompare(b.day) || (a.stream < b.stream ? -1 : 1));
  const span = { from: "2025-12-04", to: "2026-01-02" };
  const total = { bytes_in: 1_107, bytes_out: 600 };
  expect(await usage()).toStrictEqual({ ...span, total, days });
  // The same in pages.
  const pages: unknown[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await gateway.call("GET", `/organisation/usage?quantity=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
    const shown = page.body as { readonly total: object; readonly days: readonly object[] };
    expect(shown.total).toEqual(total);
    pages.push(...shown.days);
    cursor = page.headers.get("x-next-cursor");
  }
  expect(pages).toEqual(days);

  const done = await db.selectFrom("outbox").select("body").orderBy("client_id").execute();
  const told = done.map(({ body }) => new URLSearchParams(body));
  const sum = (name: string) => told.reduce((total, fields) => total + Number(fields.get(name)), 0);
  expect([sum("bytes_in"), sum("bytes_out")]).toEqual([1_107, 600]);

  const ofDay = await usage("?from=2026-01-02&to=2026-01-02");
  expect(ofDay).toMatchObject({ total: { bytes_in: 950, bytes_out: 520 }, days: [{ stream: one.id }] });
  expect(await usage(`?stream=${two.id}`)).toMatchObject({ total: { bytes_in: 7, bytes_out: 0 } });
  const limited = await gateway.call("POST", "/organisation/key", { body: { role: "readonly", scope_tag: "studio" } });
  const { key } = limited.body as { key: string };
  const seen = (await gateway.call("GET", "/organisation/usage", { key })).body;
  expect(seen).toMatchObject({ total: { bytes_in: 1_100, bytes_out: 600 } });
  const other = (await gateway.newOrganisation("Second")).keys.readonly;
  const nothing = { ...span, total: { bytes_in: 0, bytes_out: 0 }, days: [] };
  expect((await gateway.call("GET", "/organisation/usage", { key: other })).body).toStrictEqual(nothing);
});

test.each([
  ["?from=2026-02-31", 1004],
  ["?to=yesterday", 1004],
  ["?from=2026-01-02&to=2026-01-01", 9002],
  ["?from=2020-01-01", 9002],
  ["?stream=%00", 9002],
])("usage requested with %s is refused", async (query, code) => {
  const answer = await gateway.call("GET", `/organisation/usage${query}`);
  expect(answer).toMatchObject({ status: 400, body: { error: { code } } });
});

test("usage as a table has a row for each day of the whole span and stream", async () => {
  const { db, organisation, clock } = gateway;
  const [one, two] = [await newStream(["studio"]), await newStream()];
  await publish(one, 1, organisation.id);
  await publish(two, 2, organisation.id);
  const carried = { droppedFrames: 0, tracks: { video: null, audio: null } };
  await recordBytes(db, [{ clientId: 1, bytesIn: 100, bytesOut: 50, ...carried }], clock.ms);
  clock.ms += DAY_MS;
  await recordBytes(db, [{ clientId: 2, bytesIn: 7, bytesOut: 0, ...carried }], clock.ms);
  await db.updateTable("stream").set({ name: '=1+1,"x"' }).where("id", "=", two.id).execute();
  const { status, headers, body } = await gateway.call("GET", "/organisation/usage?format=csv&quantity=1");
  expect({ status, type: headers.get("content-type") }).toEqual({
    status: 200,
    type: "text/csv; charset=utf-8; header=present",
  });
  expect(headers.get("content-disposition")).toBe('attachment; filename="usage-2025-12-04-2026-01-02.csv"');
  expect(body).toBe(
    [
      "day,stream,streamname,bytes_in,bytes_out",
      `2026-01-01,${one.id},${one.name},100,50`,
      `2026-01-02,${two.id},"'=1+1,""x""",7,0`,
      "",
    ].join("\r\n"),
  );
  const { body: none } = await gateway.call("GET", "/organisation/usage?format=csv&from=2025-01-01&to=2025-01-02");
  expect(none).toBe("day,stream,streamname,bytes_in,bytes_out\r\n");
  expect(await gateway.call("GET", "/organisation/usage?format=csv&cursor=x")).toMatchObject({ status: 400 });
});
