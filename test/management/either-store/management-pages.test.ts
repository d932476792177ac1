// Lists in pages, on both stores: every list is read to its end by its cursor, even if many entries share a
// millisecond.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LiveSession } from "../../../ts/publish/live-sessions.ts";
import { type Answer, type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

type Row = Readonly<Record<string, unknown>>;

/** Every page of a list, following its Link headers. */
async function pagesOf(path: string): Promise<readonly (readonly Row[])[]> {
  const pages: (readonly Row[])[] = [];
  for (let next: string | null = path; next !== null && pages.length < 100; ) {
    const { status, body, headers } = await gateway.call("GET", next);
    expect(status).toBe(200);
    pages.push(Array.isArray(body) ? body : (body as { readonly days: readonly Row[] }).days);
    next = /^<([^>]+)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1] ?? null;
    const cursor = headers.get("x-next-cursor");
    expect(next === null ? null : new URLSearchParams(next.split("?")[1]).get("cursor")).toBe(cursor);
  }
  return pages;
}

async function addStreams(count: number): Promise<readonly string[]> {
  const { id: organisation_id, hash } = gateway.organisation;
  const times = { created_at: gateway.clock.ms, updated_at: gateway.clock.ms };
  const rows = Array.from({ length: count }, (_, index) => {
    const id = `s-${String(index).padStart(4, "0")}`;
    return { id, organisation_id, name: `${hash}-${index}`, state: "created" as const, tags: "[]", ...times };
  });
  await gateway.db.insertInto("stream").values(rows).execute();
  return rows.map(({ id }) => id);
}

test("streams of one millisecond appear on one page each, and the 501st is reached", async () => {
  const ids = await addStreams(501);
  const pages = await pagesOf("/stream?quantity=500");
  expect(pages.map(({ length }) => length)).toEqual([500, 1]);
  expect(pages.flat().map(({ id }) => id)).toEqual(ids);
});

test("a page keeps the previous page's filter, and deletions in between skip nothing else", async () => {
  const ids = await addStreams(5);
  const { headers } = await gateway.call("GET", "/stream?state=created&quantity=2");
  await gateway.db.updateTable("stream").set({ state: "deleted" }).where("id", "=", "s-0001").execute();
  const next = /^<([^>]+)>/.exec(headers.get("link") ?? "")?.[1] ?? "";
  expect(next).toContain("state=created");
  const { body } = await gateway.call("GET", next);
  expect((body as Row[]).map(({ id }) => id)).toEqual(ids.slice(2, 4));
});

test.each(["\0", "a\0b", "\ud800"])("a made-up cursor with %j is refused like any other", async (odd) => {
  const cursors = { token: [0, odd], refusal: [0, 0, odd], user: [0, odd], stream: [0, odd] };
  const paths = { token: "/token", refusal: "/refusal", user: "/organisation/user", stream: "/stream" };
  for (const [list, position] of Object.entries(cursors)) {
    const cursor = Buffer.from(JSON.stringify([list, position])).toString("base64url");
    const { status, body } = await gateway.call("GET", `${paths[list as keyof typeof paths]}?cursor=${cursor}`);
    expect([list, status, JSON.stringify(body)]).toEqual([list, 400, expect.stringContaining("not a cursor")]);
  }
});

test("sessions, people, keys and the audit log are read page by page", async () => {
  const key = async (label: string) =>
    await gateway.call("POST", "/organisation/key", { body: { role: "user", label } });
  for (const label of ["a", "b"]) await key(label);
  for (const email of ["a@b.example", "c@d.example", "e@f.example"]) {
    const body = { email, password: "long enough for all", role: "user" };
    await gateway.call("POST", "/organisation/user", { body });
  }
  gateway.live.live.push(...[7, 8, 9].map((clientId) => session(clientId)));
  const once = async (path: string) => (await gateway.call("GET", path)).body;
  for (const [path, count] of [
    ["/organisation/key", 5],
    ["/organisation/user", 3],
    ["/organisation/audit", 5],
    ["/session", 3],
  ] as const) {
    const pages = await pagesOf(`${path}?quantity=2`);
    expect(pages).toHaveLength(Math.ceil(count / 2));
    expect(pages.flat()).toEqual(await once(path));
    expect(pages.flat()).toHaveLength(count);
  }
});

test("with a tag, a key is shown all its sessions of other nodes, however many others precede them", async () => {
  await gateway.close();
  const elsewhere = [1, 2, 5].map((clientId) => session(clientId, clientId === 5 ? "tagged" : "s"));
  const others = {
    sessions: async (_: string, page: { readonly after: number; readonly quantity: number }) =>
      elsewhere.filter(({ clientId }) => clientId > page.after).slice(0, page.quantity),
    rows: async () => [],
  };
  gateway = await openGateway({}, { others });
  const { id: organisation_id, hash } = gateway.organisation;
  const row = { organisation_id, name: `${hash}-1`, state: "created" as const, tags: '["studio"]' };
  const times = { created_at: gateway.clock.ms, updated_at: gateway.clock.ms };
  await gateway.db
    .insertInto("stream")
    .values({ id: "tagged", ...row, ...times })
    .execute();
  gateway.live.live.push(session(10, "tagged"));
  const made = await gateway.call("POST", "/organisation/key", { body: { role: "user", scope_tag: "studio" } });
  const { key } = made.body as { readonly key: string };
  const pages: unknown[] = [];
  for (let path: string | null = "/session?quantity=1"; path !== null; ) {
    const { body, headers }: Answer = await gateway.call("GET", path, { key });
    pages.push((body as Row[]).map(({ client_id }) => client_id));
    path = /^<([^>]+)>/.exec(headers.get("link") ?? "")?.[1] ?? null;
  }
  expect(pages).toEqual([[5], [10]]);
});

test("deliveries and days of usage of one moment are read page by page", async () => {
  const { id: organisation_id } = gateway.organisation;
  const [first = ""] = await addStreams(3);
  const told = {
    organisation_id,
    client_id: 1,
    call: "publish" as const,
    name: "n",
    url: "https://a.example/",
    body: "",
  };
  const outcome = { outcome: "answered", status: 200, reason: null, latency_ms: 1, attempts: 1, bytes: 1 };
  const times = { first_at: gateway.clock.ms, last_at: gateway.clock.ms };
  const deliveries = ["msg_a", "msg_b", "msg_c"].map((id) => ({ id, ...told, ...outcome, ...times }));
  await gateway.db.insertInto("delivery").values(deliveries).execute();
  const bytes = { day: "2026-01-01", organisation_id, bytes_in: 1, bytes_out: 2 };
  const usage = ["s-0000", "s-0001", "s-0002"].map((stream_id) => ({ stream_id, ...bytes }));
  await gateway.db.insertInto("usage").values(usage).execute();
  const sent = await pagesOf("/organisation/webhook/deliveries?quantity=2");
  expect(sent.map((page) => page.map(({ id }) => id))).toEqual([["msg_a", "msg_b"], ["msg_c"]]);
  const days = await pagesOf("/organisation/usage?quantity=2");
  expect(days.map((page) => page.map(({ stream }) => stream))).toEqual([[first, "s-0001"], ["s-0002"]]);
});

test("a cursor is valid for one list, and anything else is refused by name", async () => {
  await addStreams(2);
  const { headers } = await gateway.call("GET", "/stream?quantity=1");
  const cursor = headers.get("x-next-cursor") ?? "";
  expect(cursor).toMatch(/^[\w-]+$/);
  const refusal = { code: 9002, userinfo: { parameter: "cursor", reason: "is not a cursor of this list" } };
  const nul = Buffer.from(JSON.stringify(["stream", [1, "\0"]])).toString("base64url");
  for (const [path, given] of [
    ["/organisation/user", cursor],
    ["/stream", "1"],
    ["/stream", nul],
    ["/stream", "a".repeat(600)],
    ["/session", cursor.slice(1)],
  ]) {
    const answer = await gateway.call("GET", `${path}?cursor=${given}`);
    expect(answer).toMatchObject({ status: 400, body: { error: refusal } });
  }
});

test.each(["/stream?tags=a", "/organisation?x=1", "/organisation/audit?Quantity=2", "/session?page=2"])(
  "%s has an unknown parameter and is refused",
  async (path) => {
    const parameter = /\?(\w+)/.exec(path)?.[1];
    const userinfo = { parameter, reason: "is not a parameter of this address" };
    expect(await gateway.call("GET", path)).toMatchObject({ status: 400, body: { error: { code: 9002, userinfo } } });
  },
);

function session(clientId: number, streamId = "s"): LiveSession {
  return {
    clientId,
    organisationId: gateway.organisation.id,
    streamId,
    name: "n",
    protocol: "rtmp",
    address: "203.0.113.9",
    acceptedAt: 0,
    continues: null,
    backup: false,
    onAir: true,
    timestampMs: 0,
    bytesIn: 0,
    bytesOut: 0,
    droppedFrames: 0,
    subscribers: 0,
    maxBitrateKbps: 0,
    tracks: { video: null, audio: null },
    upstreams: [],
    transcoderError: null,
    findings: [],
    irregularities: [],
  };
}
