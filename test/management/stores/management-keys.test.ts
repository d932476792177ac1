// API keys over their life (M15), the tag a key may be limited to, the trial of an organisation (M14).
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Answer, type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

const failure = (code: number, message: string, userinfo: object = {}) => ({ error: { code, message, userinfo } });
const NO_KEY = "Access denied: send a valid API key in the header x-service-apikey";
const DENIED = { status: 403, body: failure(2001, NO_KEY, { required_header: "x-service-apikey" }) };
const START = "2026-01-01T00:00:00.000Z";
const DAY_MS = 86_400_000;

interface Key {
  readonly id: string;
  readonly key: string;
}

const newKey = async (body: object) => keyOf(await gateway.call("POST", "/organisation/key", { body }));
const opens = async (key: string) => (await gateway.call("GET", "/organisation", { key })).status;

function keyOf({ status, body }: Answer): Key {
  expect({ status, body }).toMatchObject({ status: 200 });
  return body as Key;
}

test("a new key is shown once, as documented, and has the permissions of its role", async () => {
  const made = await newKey({ role: "user", label: "encoder room", expires_at: "2026-02-01T00:00:00Z" });
  const record = {
    id: made.id,
    label: "encoder room",
    role: "user",
    scope_tag: null,
    created_at: START,
    expires_at: "2026-02-01T00:00:00.000Z",
    last_used_at: null,
  };
  expect(made).toStrictEqual({ ...record, key: made.key });
  expect(made.key).toMatch(new RegExp(`^hg_${made.id}_[A-Za-z0-9]{34}$`));
  expect((await gateway.call("POST", "/stream", { key: made.key })).status).toBe(200);
  const listed = (await gateway.call("GET", "/organisation/key")).body as Key[];
  expect(listed.find(({ id }) => id === made.id)).toStrictEqual({ ...record, last_used_at: START });
  expect(JSON.stringify(listed)).not.toContain(made.key.slice(12));
  gateway.clock.ms = Date.parse("2026-02-01T00:00:00Z");
  expect(await opens(made.key)).toBe(403);
  expect(((await gateway.call("GET", "/organisation/key")).body as Key[]).map(({ id }) => id)).not.toContain(made.id);
});

test.each<[body: unknown, refusal: object]>([
  [{}, failure(1002, "Parameter required: role", { required_parameter: "role" })],
  [{ role: 1 }, failure(1004, "Wrong Data Type: role", { parameter: "role", type: "string" })],
  [
    { role: "owner" },
    failure(9002, "Invalid value: role must be one of administrator, user, readonly", {
      parameter: "role",
      reason: "must be one of administrator, user, readonly",
    }),
  ],
  [
    { role: "user", expires_at: "tomorrow" },
    failure(1004, "Wrong Data Type: expires_at", { parameter: "expires_at", type: "RFC 3339 time" }),
  ],
  [
    { role: "user", expires_at: START },
    failure(9002, "Invalid value: expires_at must be in the future", {
      parameter: "expires_at",
      reason: "must be in the future",
    }),
  ],
  [
    { role: "user", label: "x".repeat(101) },
    failure(9002, "Invalid value: label must not be longer than 100 characters", {
      parameter: "label",
      reason: "must not be longer than 100 characters",
    }),
  ],
])("a key like %j is refused", async (body, refusal) => {
  const answer = await gateway.call("POST", "/organisation/key", { body });
  expect({ status: answer.status, body: answer.body }).toStrictEqual({ status: 400, body: refusal });
});

test("a rotated key and its successor are both valid for a day", async () => {
  const old = await newKey({ role: "readonly", label: "player" });
  const answer = await gateway.call("POST", `/organisation/key/${old.id}/rotate`);
  const next = keyOf(answer);
  expect(answer.body).toMatchObject({ role: "readonly", label: "player", expires_at: null });
  expect(answer.body).toMatchObject({ former: { id: old.id, expires_at: "2026-01-02T00:00:00.000Z" } });
  expect([await opens(old.key), await opens(next.key)]).toEqual([200, 200]);
  gateway.clock.ms += DAY_MS;
  expect([await opens(old.key), await opens(next.key)]).toEqual([403, 200]);
  const again = await gateway.call("POST", `/organisation/key/${old.id}/rotate`);
  expect(again).toMatchObject({ status: 404, body: failure(9006, "Unknown API key") });
});

test.each([2, 30])("the successor of a key that expires in %i hours expires when it does", async (hours) => {
  const expires_at = new Date(gateway.clock.ms + hours * 3_600_000).toISOString();
  let key = await newKey({ role: "administrator", label: "contractor", expires_at });
  for (let turn = 0; turn < 3; turn += 1) {
    const answer = await gateway.call("POST", `/organisation/key/${key.id}/rotate`);
    expect(answer.body).toMatchObject({ expires_at });
    key = keyOf(answer);
  }
  gateway.clock.ms += hours * 3_600_000;
  expect(await opens(key.key)).toBe(403);
});

test("a revoked key is invalid immediately; other organisations' keys are unknown", async () => {
  const mine = await newKey({ role: "user" });
  const key = (await gateway.newOrganisation("Second")).keys.administrator;
  const unknown = { status: 404, body: failure(9006, "Unknown API key") };
  for (const id of [mine.id, "none", "%00"]) {
    expect(await gateway.call("DELETE", `/organisation/key/${id}`, { key })).toMatchObject(unknown);
    expect(await gateway.call("POST", `/organisation/key/${id}/rotate`, { key })).toMatchObject(unknown);
  }
  expect(await opens(mine.key)).toBe(200);
  expect(await gateway.call("DELETE", `/organisation/key/${mine.id}`)).toMatchObject({
    status: 200,
    body: { id: mine.id },
  });
  expect(await gateway.call("GET", "/organisation", { key: mine.key })).toMatchObject(DENIED);
  expect(await gateway.call("DELETE", `/organisation/key/${mine.id}`)).toMatchObject(unknown);
});

test("the last administrator key of an organisation cannot be revoked, and one of two can", async () => {
  const { keys } = await gateway.newOrganisation("Third");
  const key = keys.administrator;
  const list = async () =>
    (await gateway.call("GET", "/organisation/key", { key })).body as { id: string; role: string }[];
  const administrators = async () => (await list()).filter(({ role }) => role === "administrator").map(({ id }) => id);
  const [first = ""] = await administrators();
  const limited = { role: "administrator", scope_tag: "studio" };
  expect((await gateway.call("POST", "/organisation/key", { key, body: limited })).status).toBe(200);
  const refused = await gateway.call("DELETE", `/organisation/key/${first}`, { key });
  expect(refused).toMatchObject({ status: 400, body: { error: { code: 9002 } } });
  const other = await gateway.call("POST", "/organisation/key", { key, body: { role: "administrator" } });
  expect(other.status).toBe(200);
  expect((await gateway.call("DELETE", `/organisation/key/${first}`, { key })).status).toBe(200);
});

test("a key limited to a tag sees, creates and controls only streams with it", async () => {
  const { key } = await newKey({ role: "administrator", scope_tag: "studio" });
  const foreign = (await gateway.call("POST", "/stream", { body: { tags: ["other"] } })).body as { id: string };
  const own = (await gateway.call("POST", "/stream", { key, body: { tags: ["a"] } })).body as { id: string };
  expect(own).toMatchObject({ tags: ["a", "studio"] });
  expect(await gateway.call("GET", "/stream", { key })).toMatchObject({ body: [{ id: own.id }] });
  const unknown = { status: 404, body: failure(3001, "Unknown stream") };
  expect(await gateway.call("GET", `/stream/${foreign.id}`, { key })).toMatchObject(unknown);
  expect(await gateway.call("PUT", `/stream/${foreign.id}/lock`, { key })).toMatchObject(unknown);
  expect(await gateway.call("DELETE", `/stream/${foreign.id}`, { key })).toMatchObject(unknown);
  const retagged = await gateway.call("PUT", `/stream/${own.id}/tag`, { key, body: { tags: [] } });
  expect(retagged).toMatchObject({ status: 200, body: { tags: ["studio"] } });
  const refusal = { status: 403, body: failure(2001, "Access denied", { required_scope: "organisation" }) };
  for (const path of ["/organisation/key", "/organisation/user", "/organisation/audit"]) {
    expect(await gateway.call("GET", path, { key })).toMatchObject(refusal);
  }
  expect(await gateway.call("PUT", "/organisation/webhook", { key, body: { webhook: null } })).toMatchObject(refusal);
  expect(await gateway.call("GET", "/me", { key })).toMatchObject({ status: 200, body: { scope_tag: "studio" } });
});

test("a key limited to a tag signs web tokens only for streams with it", async () => {
  const { key } = await newKey({ role: "user", scope_tag: "studio" });
  const nameOf = async (tags: readonly string[]) => {
    const { body } = await gateway.call("POST", "/stream", { body: { tags } });
    return (body as { ingest: { rtmp: { streamname: string } } }).ingest.rtmp.streamname;
  };
  const sign = async (streamname: string) =>
    await gateway.call("POST", "/webcaster", { key, body: { streamname, ingesturl: "rtmp://in.example/live" } });
  const [own, foreign] = [await nameOf(["studio"]), await nameOf(["other"])];
  for (const name of [own, `${own}?passcode=s3cret`]) expect((await sign(name)).status).toBe(200);
  for (const name of [foreign, `${foreign}?a=${own}`, "never"]) {
    const body = { success: false, errorCode: 3001, message: "Unknown stream" };
    expect(await sign(name)).toMatchObject({ status: 404, body });
  }
});

test("a trial ends at its time for every key; a paid organisation continues", async () => {
  const end = gateway.clock.ms + DAY_MS;
  await gateway.db.updateTable("organisation").set({ plan: "trial", trial_ends_at: end }).execute();
  expect(await opens(gateway.keys.user)).toBe(200);
  gateway.clock.ms = end;
  const off = { status: 403, body: failure(2001, "Organisation is not enabled", { required_state: "enabled" }) };
  expect(await gateway.call("GET", "/organisation")).toMatchObject(off);
  await gateway.db.updateTable("organisation").set({ plan: "paid" }).execute();
  expect(await opens(gateway.keys.user)).toBe(200);
});
