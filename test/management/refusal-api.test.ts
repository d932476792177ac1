// GET /refusal and /stream/{id}/refusal: who sees which refusals, and the filters. Names as sent, where no stream has
// them, are for the operator only.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Gateway, type Member, openGateway, START_MS } from "../support/gateway.ts";
import { until } from "../support/publishing.ts";

const OFFER = "v=0\r\no=- 7316 2 IN IP4 127.0.0.1\r\n";
const WRONG = "Ab1Cd-guessedByNobody";

interface Row {
  readonly id: string;
  readonly at: string;
  readonly reason: string;
  readonly address: string | null;
  readonly protocol: string;
  readonly stream: { readonly id: string; readonly name: string } | null;
  readonly sent_name: string | null;
  readonly count: number;
}

let gateway: Gateway;
let other: Member;
let own: { readonly id: string; readonly name: string };
let foreign: typeof own;

async function newStream(key: string, tags: readonly string[] = []) {
  const { body } = await gateway.call("POST", "/stream", { key, body: { tags } });
  const { id, ingest } = body as { id: string; ingest: { rtmp: { streamname: string } } };
  await gateway.call("PUT", `/stream/${id}/lock`, { key });
  return { id, name: ingest.rtmp.streamname };
}

async function offer(name: string): Promise<void> {
  const path = `/p/webrtc?stream_url=rtmp://localhost/live&stream_name=${encodeURIComponent(name)}`;
  const { status } = await gateway.call("POST", path, {
    key: null,
    headers: { "content-type": "application/sdp" },
    body: OFFER,
  });
  expect(status).toBeGreaterThanOrEqual(400);
}

async function list(key: string, query = "", path = "/refusal"): Promise<readonly Row[]> {
  const { status, body } = await gateway.call("GET", `${path}${query}`, { key });
  expect(status, JSON.stringify(body)).toBe(200);
  return body as readonly Row[];
}
const shape = ({ reason, stream, sent_name }: Row) => [reason, stream?.id ?? null, sent_name];

beforeAll(async () => {
  gateway = await openGateway({ HEADGATE_INGEST_HOSTS: "localhost" });
  other = await gateway.newOrganisation("Second");
  await gateway.db.updateTable("organisation").set({ operates: 1 }).where("id", "=", gateway.organisation.id).execute();
  own = await newStream(gateway.keys.administrator, ["studio"]);
  foreign = await newStream(other.keys.administrator);
  await offer(own.name);
  await offer(foreign.name);
  await offer(`${WRONG}?key=s3cret`);
  await offer(`${WRONG}&key=s3cret`);
  await offer(`${WRONG}%26key=s3cret`);
  await until(async () => (await list(gateway.keys.administrator)).some(({ count }) => count === 3));
});
afterAll(() => gateway.close());

describe("GET /refusal", () => {
  test("shows the operator the names that no stream has, as one without arguments, and no other organisation's rows", async () => {
    const rows = await list(gateway.keys.administrator);
    expect(rows.map(shape).toSorted()).toEqual(
      [
        ["locked_stream", own.id, null],
        ["unknown_stream", null, WRONG],
      ].toSorted(),
    );
    expect(rows[0]).toMatchObject({ address: "203.0.113.7", protocol: "whip", at: new Date(START_MS).toISOString() });
    expect(JSON.stringify(rows)).not.toContain("s3cret");
    expect(JSON.stringify(await gateway.db.selectFrom("refusal").selectAll().execute())).not.toContain("s3cret");
  });

  test.each(["readonly", "user"] as const)(
    "shows a %s key of the operator its organisation's own ones only",
    async (role) => {
      expect((await list(gateway.keys[role])).map(shape)).toEqual([["locked_stream", own.id, null]]);
    },
  );

  test.each(["readonly", "user", "administrator"] as const)(
    "shows a %s key of a tenant the tenant's own ones only",
    async (role) => {
      const rows = await list(other.keys[role]);
      expect(rows.map(shape)).toEqual([["locked_stream", foreign.id, null]]);
      for (const query of [
        "?reason=unknown_stream",
        "?request=play",
        `?from=${new Date(START_MS + 1_000).toISOString()}`,
      ])
        expect(await list(other.keys[role], query)).toEqual([]);
    },
  );

  test("knows no stream of another organisation, with a filter or a cursor of its list", async () => {
    const { status, body } = await gateway.call("GET", `/refusal?stream=${own.id}`, { key: other.keys.administrator });
    expect([status, body]).toMatchObject([404, { error: { code: 3001 } }]);
    const page = await gateway.call("GET", "/refusal?quantity=1");
    const cursor = page.headers.get("x-next-cursor") ?? "";
    expect(cursor).not.toBe("");
    const rest = await list(other.keys.administrator, `?cursor=${encodeURIComponent(cursor)}`);
    expect(rest.filter(({ stream }) => stream?.id !== foreign.id)).toEqual([]);
    expect(await list(gateway.keys.administrator, `?quantity=1&cursor=${encodeURIComponent(cursor)}`)).toHaveLength(1);
  });

  test("is refused to a key that is limited to a tag, which has the list of each of its streams", async () => {
    const limited = { role: "administrator", scope_tag: "studio" };
    const { key } = (await gateway.call("POST", "/organisation/key", { body: limited })).body as { key: string };
    expect((await gateway.call("GET", "/refusal", { key })).status).toBe(403);
    expect((await list(key, "", `/stream/${own.id}/refusal`)).map(shape)).toEqual([["locked_stream", own.id, null]]);
    const outside = await newStream(gateway.keys.administrator, ["elsewhere"]);
    expect((await gateway.call("GET", `/stream/${outside.id}/refusal`, { key })).status).toBe(404);
    expect((await gateway.call("GET", `/stream/${foreign.id}/refusal`, { key })).status).toBe(404);
  });

  test.each([
    ["?reason=locked_stream", 1],
    ["?reason=full", 0],
    ["?request=publish", 2],
    ["?request=play", 0],
    [`?from=${new Date(START_MS).toISOString()}`, 2],
    [`?from=${new Date(START_MS + 1).toISOString()}`, 0],
    [`?to=${new Date(START_MS).toISOString()}`, 0],
    [`?to=${new Date(START_MS + 1).toISOString()}`, 2],
  ])("%s has %d", async (query, count) => {
    expect(await list(gateway.keys.administrator, query)).toHaveLength(count);
  });

  test.each(["reason=nonsense", "request=watch", "from=yesterday", "to=2026-13-01", "quantity=0", "cursor=x"])(
    "?%s is refused with the parameter's name",
    async (query) => {
      const { status, body } = await gateway.call("GET", `/refusal?${query}`);
      expect(status).toBe(400);
      expect(JSON.stringify(body)).toContain(query.split("=")[0]);
    },
  );

  test("still says whose it was when the stream is deleted", async () => {
    const gone = await newStream(other.keys.administrator);
    await gateway.call("DELETE", `/stream/${gone.id}`, { key: other.keys.administrator });
    await offer(gone.name);
    const found = await until(async () =>
      (await list(other.keys.administrator)).find(({ reason }) => reason === "unknown_stream"),
    );
    expect(found).toMatchObject({ stream: { id: gone.id, name: gone.name }, sent_name: null });
    expect((await list(gateway.keys.administrator)).some(({ stream }) => stream?.id === gone.id)).toBe(false);
  });
});
