// The publish key in the management API: who sees it, who renews it, and that no record shows it to others.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ROUTES } from "../../ts/organisation/roles.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { fill, type Inventory, requestOf } from "../support/inventory.ts";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());

interface Record {
  readonly id: string;
  readonly publish_key: boolean | null;
  readonly ingest: {
    readonly rtmp: { readonly url: string; readonly streamname: string; readonly stream_key: string };
    readonly whip: { readonly url: string };
    readonly key: string | null;
  };
  readonly playout: { readonly rtmp: readonly { readonly streamname: string }[] };
}

async function call(method: string, path: string, body?: object, key = gateway.keys.administrator): Promise<Record> {
  const answer = await gateway.call(method, path, { key, ...(body && { body }) });
  if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body as Record;
}

const settings = async (publish_key: boolean) => await call("PUT", "/organisation/settings", { publish_key });

describe("a stream's record", () => {
  beforeEach(async () => {
    await settings(false);
  });

  test("carries the key in what encoders use and nowhere else; the documented names stay plain", async () => {
    const plain = await call("POST", "/stream");
    const name = plain.ingest.rtmp.streamname;
    expect(plain.ingest).toMatchObject({ key: null, rtmp: { stream_key: name } });
    await settings(true);
    const { ingest, playout, publish_key } = await call("GET", `/stream/${plain.id}`);
    const { key } = ingest;
    expect(key).toMatch(/^[A-Za-z0-9]{16}$/);
    expect(ingest.rtmp).toMatchObject({ streamname: name, stream_key: `${name}?key=${key}` });
    expect(new URL(ingest.whip.url).searchParams.get("stream_name")).toBe(`${name}?key=${key}`);
    expect([publish_key, JSON.stringify(playout).includes("key=")]).toEqual([null, false]);
    const listed = (await call("GET", "/stream")) as unknown as readonly Record[];
    expect(listed.find(({ id }) => id === plain.id)?.ingest.key).toBe(key);
  });

  test.each([
    [true, true],
    [false, false],
    [null, false],
  ])("has the stream's own setting: %s is needed: %s", async (publish_key, isNeeded) => {
    for (const { id } of [await call("POST", "/stream", { publish_key }), await call("POST", "/stream")]) {
      const set = await call("PUT", `/stream/${id}/key`, { publish_key });
      expect([set.publish_key, set.ingest.key !== null]).toEqual([publish_key, isNeeded]);
      expect(await call("GET", `/stream/${id}`)).toEqual(set);
    }
    await settings(true);
    const { ingest } = await call("POST", "/stream", { publish_key });
    expect(ingest.key !== null).toBe(publish_key !== false);
  });

  test("shows no key to those who only read, whatever the route", async () => {
    const { id, ingest } = await call("POST", "/stream", { publish_key: true });
    const key = ingest.key ?? "";
    const read = await call("GET", `/stream/${id}`, undefined, gateway.keys.readonly);
    expect(read.ingest).toMatchObject({ key: "…", rtmp: { stream_key: `${ingest.rtmp.streamname}?key=…` } });
    expect(new URL(read.ingest.whip.url).searchParams.get("stream_name")).toBe(`${ingest.rtmp.streamname}?key=…`);
    expect((await call("GET", `/stream/${id}`, undefined, gateway.keys.user)).ingest.key).toBe(key);
    for (const path of ["/stream", `/stream/${id}`, `/stream?search=${ingest.rtmp.streamname.slice(6)}`]) {
      const { body } = await gateway.call("GET", path, { key: gateway.keys.readonly });
      expect(JSON.stringify(body)).toContain(id);
      expect(JSON.stringify(body)).not.toContain(key);
    }
  });
});

describe("the key", () => {
  test("is renewed, once for a repeated request, and the audit log names the renewal without it", async () => {
    const { id, ingest } = await call("POST", "/stream", { publish_key: true });
    const headers = { "Idempotency-Key": "renew-1" };
    const key = gateway.keys.administrator;
    const [one, other] = [
      await gateway.call("POST", `/stream/${id}/key`, { key, headers }),
      await gateway.call("POST", `/stream/${id}/key`, { key, headers }),
    ];
    expect(other.body).toEqual(one.body);
    const renewed = (one.body as Record).ingest.key;
    expect([renewed === ingest.key, (await call("GET", `/stream/${id}`)).ingest.key]).toEqual([false, renewed]);
    await call("PUT", `/stream/${id}/key`, { publish_key: false });
    const audit = (await call("GET", "/organisation/audit")) as unknown as readonly {
      readonly action: string;
      readonly subject: string;
      readonly detail: object;
    }[];
    const entries = audit.filter(({ subject }) => subject === id).map(({ action, detail }) => [action, detail]);
    expect(entries.slice(0, 2)).toEqual([
      ["stream.publish_key", { publish_key: false }],
      ["stream.key", {}],
    ]);
    for (const of of [ingest.key, renewed]) {
      expect(JSON.stringify(audit)).not.toContain(of);
      expect(gateway.log()).not.toContain(of);
    }
  });

  test("is stored nowhere, only what it is derived from", async () => {
    const { id, ingest } = await call("POST", "/stream", { publish_key: true });
    await call("POST", `/stream/${id}/key`);
    const row = await gateway.db.selectFrom("stream").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
    expect(row.key_salt).toMatch(/^[A-Za-z0-9]{22}$/);
    expect(JSON.stringify(row)).not.toContain(ingest.key);
  });

  test.each(["user", "readonly"] as const)("is neither set nor renewed by %s", async (role) => {
    const { id, ingest } = await call("POST", "/stream", { publish_key: true });
    const key = gateway.keys[role];
    for (const [method, body] of [
      ["POST", {}],
      ["PUT", { publish_key: false }],
    ] as const) {
      const { status } = await gateway.call(method, `/stream/${id}/key`, { key, body });
      expect(status).toBe(403);
    }
    expect((await call("GET", `/stream/${id}`)).ingest.key).toBe(ingest.key);
  });

  test.each([{}, { publish_key: "yes" }, { publish_key: 1 }])("is not set by %j", async (body) => {
    const { id } = await call("POST", "/stream");
    expect((await gateway.call("PUT", `/stream/${id}/key`, { body })).status).toBe(400);
  });

  test("of another organisation's, a deleted or no stream is not found", async () => {
    const other = await gateway.newOrganisation("Other");
    const { id } = await call("POST", "/stream");
    const gone = await call("POST", "/stream");
    await call("DELETE", `/stream/${gone.id}`);
    for (const [of, key] of [
      [id, other.keys.administrator],
      [gone.id, gateway.keys.administrator],
      ["none", gateway.keys.administrator],
    ] as const) {
      expect((await gateway.call("POST", `/stream/${of}/key`, { key })).status).toBe(404);
      expect((await gateway.call("PUT", `/stream/${of}/key`, { key, body: { publish_key: true } })).status).toBe(404);
    }
  });
});

test("no route that a read-only key may call answers with a key", async () => {
  const owned: Inventory = await fill(gateway, gateway);
  const { ingest } = await call("PUT", `/stream/${owned.stream.id}/key`, { publish_key: true });
  const key = ingest.key ?? "";
  // As publishes leave it: in the arguments of their records and in the bodies of their webhook calls.
  await gateway.db
    .updateTable("publish")
    .set({ arguments: `key=${key}&a=b` })
    .execute();
  await gateway.db.updateTable("delivery").set({ body: `key=***&a=***&call=publish` }).execute();
  const reading = Object.entries(ROUTES).filter(([route, action]) => route.startsWith("GET") && action !== "anyone");
  for (const [route] of reading) {
    if (/events|live|capture/.test(route)) continue;
    const { path } = requestOf(route as keyof typeof ROUTES, owned);
    const { body } = await gateway.call("GET", path, { key: gateway.keys.readonly });
    expect(JSON.stringify(body), route).not.toContain(key);
  }
});
