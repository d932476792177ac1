// No statement on a request's path grows with what an organisation has: the plans of the statements of every route, on
// both stores (vitest.config.ts), in an organisation with many streams, publishes and records.
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { countStreams } from "../../../ts/http/monitoring/stream-changes.ts";
import { hashPassword } from "../../../ts/organisation/passwords.ts";
import { addPerson } from "../../../ts/organisation/people.ts";
import { WINDOW } from "../../../ts/organisation/reads/stream-list.ts";
import { ROUTES, type RouteName } from "../../../ts/organisation/roles.ts";
import { TAGGED_ROWS_LIMIT } from "../../../ts/organisation/usage.ts";
import { openStore, type Store } from "../../../ts/store/open.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { fill, type Inventory, requestOf } from "../../support/inventory.ts";
import { addManyPeople, addManyRows, faultsOf, recordStatements } from "../../support/large-store.ts";
import { ON_POSTGRES } from "../../support/stores.ts";
import { isWholeRun } from "../../support/whole-run.ts";

const STREAMS = 4 * WINDOW;
/** Of each of them, and people: both tables have more rows than a statement may read. */
const PUBLISHES = isWholeRun ? 5 : 1;
const PEOPLE = isWholeRun ? STREAMS : 2 * WINDOW;
/** A window, and what is looked up for a page. */
const MOST_ROWS = WINDOW + 600;

let gateway: Gateway;
let inventory: Inventory;
let limited: string;
/** Explains the statements of the embedded store: libsql keeps the transaction of an EXPLAIN open, so its connection would
 *  see nothing that is written later, or hold back what it writes. */
let plans: Store | null = null;

beforeAll(async () => {
  gateway = await openGateway();
  inventory = await fill(gateway, gateway);
  const role = { role: "administrator", scope_tag: "common" };
  limited = ((await gateway.call("POST", "/organisation/key", { body: role })).body as { key: string }).key;
  await addManyRows(gateway.db, gateway.organisation.id, { count: STREAMS, publishes: PUBLISHES });
  await addManyPeople(gateway.db, PEOPLE);
  const { dataDir } = gateway;
  if (!ON_POSTGRES) plans = await openStore({ dataDir, databaseUrl: null, access: "command" });
}, 120_000);
afterAll(async () => {
  await plans?.close();
  await gateway.close();
});

async function faultsDuring(act: () => Promise<unknown>): Promise<readonly string[]> {
  const { statements, stop } = recordStatements(gateway.reads);
  try {
    await act();
  } finally {
    stop();
  }
  const faults: string[] = [];
  for (const { query, isRead } of statements.values()) {
    for (const fault of await faultsOf(plans?.db ?? (isRead ? gateway.reads : gateway.db), query, MOST_ROWS))
      faults.push(`${fault}: ${query.sql}`);
  }
  expect(statements.size).toBeGreaterThan(0);
  return faults;
}

const routes = (Object.keys(ROUTES) as RouteName[])
  .filter((route) => ROUTES[route] !== "anyone" && route !== "GET /organisation/events")
  .sort((one, other) => Number(other.startsWith("GET")) - Number(one.startsWith("GET")));

const FILTERED = [
  ...["zzzz", "common", "z", "event-1999", "mmo", "Many0-19", "%", "%_", "vent"].map(
    (text) => `/stream?search=${encodeURIComponent(text)}`,
  ),
  "/stream?search=show",
  "/stream?search=how%201999",
  "/stream?search=show%207&order=live",
  "/stream?external_id=id-1999",
  "/stream?external_id=id-7&tags[]=common&search=show&order=live",
  "/stream?external_id=nothing",
  "/stream?search=zzzz&state=locked",
  "/stream?search=vent&order=live",
  "/stream?tags[]=common",
  "/stream?tags[]=common&tags[]=event-7",
  "/stream?tags[]=event-7&tags[]=common&search=zzzz",
  "/stream?tags[]=common&state=locked",
  "/stream?tags[]=common&search=zzzz&order=live",
  "/stream?state=locked",
  "/stream?state=ended&quantity=500",
  "/stream?state=live",
  "/stream?order=live",
  "/organisation/usage?from=2025-01-02&to=2026-01-01",
  "/organisation/usage?from=2025-12-01&to=2026-01-01&stream=m-7",
  "/organisation/usage?from=2025-12-01&to=2026-01-01&format=csv",
  "/organisation/status",
  "/organisation/webhook/deliveries?failed=true",
  "/organisation/webhook/deliveries?failed=true&call=publish_done",
  "/organisation/webhook/deliveries?call=publish_done",
  "/organisation/webhook/deliveries?name=Many0-7",
  "/organisation/webhook/deliveries?name=nothing&failed=true",
  "/organisation/webhook/deliveries?clientid=7",
  "/organisation/audit?action=key.create",
  "/organisation/audit?who=nobody",
  "/stream/m-7/publish",
  "/refusal",
  "/refusal?quantity=500",
  "/refusal?reason=full",
  "/refusal?reason=locked_stream&request=play",
  "/refusal?request=play&from=2023-11-14T22:13:21Z",
  "/refusal?from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z",
  "/refusal?stream=m-1&reason=rejected_by_customer",
  "/stream/m-1/refusal",
  "/token?quantity=500",
  "/token?stream=m-7",
  "/token?who=k-1",
  "/token?who=nobody&stream=m-7",
  "/token?from=2023-11-14T22:13:21Z&to=2023-11-14T22:13:22Z",
  "/stream/m-7/publish?from=2023-11-14T22:13:21Z",
  "/organisation/audit?from=2023-01-01T00:00:00Z&action=nothing",
  "/organisation/webhook/deliveries?from=2023-11-14T22:13:21Z&failed=true",
  "/deployment/organisation",
];

test.each(FILTERED)("%s, and its next page", async (path) => {
  const faults = await faultsDuring(async () => {
    const first = await gateway.call("GET", path);
    expect(first.status).toBe(200);
    const cursor = first.headers.get("x-next-cursor");
    if (cursor === null) return;
    const next = await gateway.call("GET", `${path}${path.includes("?") ? "&" : "?"}cursor=${cursor}`);
    expect(next.status).toBe(200);
  });
  expect(faults).toEqual([]);
});

test.each(["/stream", "/session", "/stream?search=zzzz", "/stream?order=live"])(
  "%s with a key of one tag",
  async (path) => {
    expect(await faultsDuring(() => gateway.call("GET", path, { key: limited }))).toEqual([]);
  },
);

test("a page deep in a list reads what the first one reads", async () => {
  const cursor = (position: unknown) => Buffer.from(JSON.stringify(position)).toString("base64url");
  const stream = cursor(["stream", [1_700_000_000_100, "m-100"]]);
  for (const path of [
    `/stream?cursor=${stream}`,
    `/stream?tags[]=common&cursor=${stream}`,
    `/stream?state=ended&cursor=${stream}`,
    `/stream?search=vent&cursor=${stream}`,
    `/organisation/usage?from=2025-12-01&to=2026-01-01&cursor=${cursor(["usage", ["2025-12-15", "m-9"]])}`,
    `/organisation/webhook/deliveries?cursor=${cursor(["delivery", [1_700_000_000_100, "many_100"]])}`,
  ]) {
    expect(await faultsDuring(() => gateway.call("GET", path))).toEqual([]);
  }
});

test("the counts of an open dashboard", async () => {
  const { id } = gateway.organisation;
  expect(await faultsDuring(() => countStreams(gateway.reads, id, null))).toEqual([]);
  expect(await countStreams(gateway.reads, id, null)).toMatchObject({ ended: STREAMS / 2 });
});

test.each(routes)("%s", async (route) => {
  const { method, path, body } = requestOf(route, inventory);
  expect(await faultsDuring(() => gateway.call(method, path, { body }))).toEqual([]);
});

test("a sign-in, a new password with its link, a sign-out, and wrong keys", async () => {
  const [email, password] = ["ada@large.example", "correct horse battery"];
  const of = { organisation_id: gateway.organisation.id, email, role: "readonly" } as const;
  await addPerson(gateway.db, { ...of, password_hash: await hashPassword(password) }, gateway.clock.ms);
  const faults = await faultsDuring(async () => {
    const login = await gateway.call("POST", "/login", { key: null, body: { email, password } });
    expect(login.status).toBe(200);
    const { csrf_token } = login.body as { readonly csrf_token: string };
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const headers = { cookie, "x-csrf-token": csrf_token };
    expect((await gateway.call("GET", "/me", { key: null, headers })).status).toBe(200);
    await gateway.call("POST", "/login/password", { key: null, body: { token: "none", password } });
    await gateway.call("POST", "/logout", { key: null, headers });
    expect((await gateway.call("GET", "/me", { key: "hg_none" })).status).toBe(403);
  });
  expect(faults).toEqual([]);
});

test("a stream with a title and an external id, a taken one, and its end", async () => {
  const faults = await faultsDuring(async () => {
    const { body } = await gateway.call("POST", "/stream", { body: { title: "Show 7", external_id: "id-new" } });
    const { id } = body as { readonly id: string };
    const taken = { body: { external_id: "id-7" } };
    for (const [path, given] of [
      ["title", { body: { title: "Show 8" } }],
      ["external-id", { body: { external_id: "id-newer" } }],
    ] as const) {
      expect((await gateway.call("PUT", `/stream/${id}/${path}`, given)).status).toBe(200);
    }
    expect((await gateway.call("PUT", `/stream/${id}/external-id`, taken)).status).toBe(400);
    expect((await gateway.call("POST", "/stream", { key: limited, ...taken })).status).toBe(400);
    expect((await gateway.call("DELETE", `/stream/${id}`)).status).toBe(200);
  });
  expect(faults).toEqual([]);
});

test("a table of usage with a key of one tag is read in steps, and is complete", async () => {
  const path = "/organisation/usage?from=2025-12-01&to=2026-01-01&format=csv";
  let text = "";
  const faults = await faultsDuring(async () => {
    text = (await gateway.call("GET", path, { key: limited })).body as string;
  });
  expect(faults).toEqual([]);
  expect(text.match(/,m-\d+,/g)).toHaveLength(STREAMS);
  const { body } = await gateway.call("GET", "/organisation/usage?from=2025-12-01&to=2026-01-01", { key: limited });
  expect(body).toMatchObject({ total: { bytes_in: STREAMS, bytes_out: STREAMS } });
});

test("usage by tag is refused in words for a span of too many records, and not for one stream or the whole organisation", async () => {
  const days = TAGGED_ROWS_LIMIT / STREAMS;
  for (let day = 1; day <= days; day += 1) {
    await sql`
      insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out)
      select id, ${`2024-06-0${day}`}, organisation_id, 1, 1 from stream where id like 'm-%'
    `.execute(gateway.db);
  }
  const usage = (from: string, to: string, key?: string) =>
    gateway.call("GET", `/organisation/usage?from=${from}&to=${to}`, key === undefined ? {} : { key });
  expect((await usage("2024-06-01", "2024-06-30", limited)).status).toBe(200);
  await sql`
    insert into "usage" (stream_id, day, organisation_id, bytes_in, bytes_out)
    select id, '2024-06-20', organisation_id, 1, 1 from stream where id = 'm-7'
  `.execute(gateway.db);
  const refused = (await usage("2024-06-01", "2024-06-30", limited)).body;
  expect(JSON.stringify(refused)).toContain("choose fewer days, one stream, or format=csv");
  expect((await usage("2024-06-02", "2024-06-30", limited)).status).toBe(200);
  expect((await usage("2024-06-01", "2024-06-30")).status).toBe(200);
  const one = await gateway.call("GET", "/organisation/usage?from=2024-06-01&to=2024-06-30&stream=m-7", {
    key: limited,
  });
  expect(one.body).toMatchObject({ total: { bytes_in: days + 1 } });
}, 120_000);
