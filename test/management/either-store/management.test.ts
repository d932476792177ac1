// The management API as its callers see it: exact statuses and bodies (docs/management.md; M1–M9, M12, M14, M15, W21).
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Answer, type Call, type Gateway, openGateway } from "../../support/gateway.ts";

const START = "2026-01-01T00:00:00.000Z";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

const failure = (code: number, message: string, userinfo: object = {}) => ({ error: { code, message, userinfo } });
const NO_KEY = "Access denied: send a valid API key in the header x-service-apikey";
const DENIED = failure(2001, NO_KEY, { required_header: "x-service-apikey" });

const setWebhook = (body: unknown, options: Call = {}) =>
  gateway.call("PUT", "/organisation/webhook", { ...options, body });
const createStream = async (options: Call = {}) => recordOf(await gateway.call("POST", "/stream", options));

function recordOf(answer: Answer): Record<string, unknown> & { id: string; tags: string[]; ingest: Ingest } {
  expect(answer).toMatchObject({ status: 200 });
  return answer.body as ReturnType<typeof recordOf>;
}
type Ingest = { readonly rtmp: { url: string; streamname: string }; readonly whip: { url: string } };

function organisationRecord(webhook: string | null, updatedAt = START, secretSet = webhook !== null) {
  const { id, hash } = gateway.organisation;
  return {
    id,
    hash,
    name: "First",
    webhook,
    webhook_secret_set: secretSet,
    plan: "paid",
    limits: { streams: 0, ingest_kbps: 0, setups_per_second: 0 },
    created_at: START,
    updated_at: updatedAt,
  };
}

describe("an API key", () => {
  const ADDRESSES = [
    ["GET", "/organisation"],
    ["PUT", "/organisation/webhook"],
    ["DELETE", "/organisation/webhook"],
    ["POST", "/stream"],
    ["GET", "/stream"],
    ["GET", "/stream/any"],
  ] as const;

  test.each(ADDRESSES)("that is missing, empty or wrong gets the same answer at %s %s", async (method, path) => {
    const real = gateway.keys.administrator;
    for (const key of [null, "", "wrong", `${real}x`, real.slice(0, -1), real.toLowerCase(), "ключ".repeat(9)]) {
      const header = key === null ? null : Buffer.from(key).toString("latin1");
      const { status, body } = await gateway.call(method, path, { key: header });
      expect({ status, body }).toStrictEqual({ status: 403, body: DENIED });
    }
  });

  test("is checked before the body", async () => {
    expect(await setWebhook("{", { key: "wrong" })).toMatchObject({ status: 403, body: DENIED });
  });

  test("that has expired is answered like a wrong one", async () => {
    await gateway.db
      .updateTable("api_key")
      .set({ expires_at: gateway.clock.ms + 1 })
      .execute();
    expect((await gateway.call("GET", "/organisation")).status).toBe(200);
    gateway.clock.ms += 1;
    expect(await gateway.call("GET", "/organisation")).toMatchObject({ status: 403, body: DENIED });
  });

  test("of an organisation that is not enabled is refused", async () => {
    await gateway.db.updateTable("organisation").set({ enabled: 0 }).execute();
    const body = failure(2001, "Organisation is not enabled", { required_state: "enabled" });
    for (const [method, path] of ADDRESSES)
      expect(await gateway.call(method, path)).toMatchObject({ status: 403, body });
  });

  test("is nowhere in the log and nowhere in the store", async () => {
    await createStream();
    const rows = JSON.stringify(await gateway.db.selectFrom("api_key").selectAll().execute());
    expect(rows).not.toContain(gateway.keys.administrator);
    expect(gateway.log()).toContain("request answered");
    expect(gateway.log()).not.toContain(gateway.keys.administrator.slice(12));
  });
});

describe("a role", () => {
  test.each(["user", "readonly"] as const)("of %s may not change the webhook", async (role) => {
    const key = gateway.keys[role];
    const refusal = { status: 403, body: failure(2001, "Access denied", { required_role: "administrator" }) };
    expect(await setWebhook({ webhook: "https://customer.example/" }, { key })).toMatchObject(refusal);
    expect(await gateway.call("DELETE", "/organisation/webhook", { key })).toMatchObject(refusal);
    expect((await gateway.call("GET", "/organisation", { key })).body).toStrictEqual(organisationRecord(null));
  });

  test("of readonly views streams and creates none", async () => {
    const { id } = await createStream({ key: gateway.keys.user });
    const key = gateway.keys.readonly;
    expect(recordOf(await gateway.call("GET", `/stream/${id}`, { key })).id).toBe(id);
    const body = failure(2001, "Access denied", { required_role: "user" });
    expect(await gateway.call("POST", "/stream", { key })).toMatchObject({ status: 403, body });
    expect((await gateway.call("GET", "/stream", { key })).body).toHaveLength(1);
  });
});

describe("the webhook", () => {
  const URL_OF_CUSTOMER = "https://customer.example:8443/hook?a=b";

  test("is stored exactly as given and returned with the organisation", async () => {
    gateway.clock.ms += 1_500;
    const record = organisationRecord(URL_OF_CUSTOMER, "2026-01-01T00:00:01.500Z");
    const { status, body } = await setWebhook({ webhook: URL_OF_CUSTOMER, other: 1 });
    expect({ status, body }).toStrictEqual({ status: 200, body: { ...record, warnings: ["other"] } });
    expect((await gateway.call("GET", "/organisation")).body).toStrictEqual(record);
  });

  test.each([
    ["null", { body: { webhook: null } }],
    ["an empty string", { body: { webhook: "" } }],
  ])("is removed by %s", async (_, { body }) => {
    await setWebhook({ webhook: URL_OF_CUSTOMER });
    expect(await setWebhook(body)).toMatchObject({ status: 200, body: organisationRecord(null, START, true) });
  });

  test("is removed by DELETE, also when there is none", async () => {
    await setWebhook({ webhook: URL_OF_CUSTOMER });
    for (const _ of ["set", "none"]) {
      const { status, body } = await gateway.call("DELETE", "/organisation/webhook");
      expect({ status, body }).toStrictEqual({ status: 200, body: organisationRecord(null, START, true) });
    }
  });

  const MISSING = failure(1002, "Parameter required: webhook", { required_parameter: "webhook" });
  const NO_STRING = failure(1004, "Wrong Data Type: webhook", { parameter: "webhook", type: "string" });
  const NO_OBJECT = failure(1004, "Wrong Data Type: body", { parameter: "body", type: "object" });
  const NO_JSON = failure(9000, "Malformed JSON");
  const badUrl = (reason: string) => failure(9001, "Invalid webhook URL", { reason });
  const FOR_TESTS = "(for tests, a service started with --dev takes local addresses and http)";
  const inside = (kind: string) => badUrl(`the address must be publicly reachable, but it is ${kind} ${FOR_TESTS}`);
  const ODD = badUrl("must not contain spaces, control characters or backslashes");

  test.each<[body: unknown, refusal: object]>([
    ["", MISSING],
    [{}, MISSING],
    [{ Webhook: URL_OF_CUSTOMER }, MISSING],
    [{ webhook: 1 }, NO_STRING],
    [{ webhook: false }, NO_STRING],
    [{ webhook: [URL_OF_CUSTOMER] }, NO_STRING],
    [{ webhook: { url: URL_OF_CUSTOMER } }, NO_STRING],
    [[URL_OF_CUSTOMER], NO_OBJECT],
    ["null", NO_OBJECT],
    [`"${URL_OF_CUSTOMER}"`, NO_OBJECT],
    ["{", NO_JSON],
    ["webhook=https%3A%2F%2Fcustomer.example", NO_JSON],
    ["{'webhook':''}", NO_JSON],
    [new Uint8Array([0xff, 0xfe, 0x00]), NO_JSON],
    [{ webhook: "customer.example/hook" }, badUrl("must be a complete URL")],
    [{ webhook: "http://customer.example/" }, badUrl(`must be https ${FOR_TESTS}`)],
    [{ webhook: "https://user:pass@customer.example/" }, badUrl("must not contain a user name or password")],
    [{ webhook: "https://customer.example/#a" }, badUrl("must not contain a fragment")],
    [{ webhook: ` ${URL_OF_CUSTOMER}` }, ODD],
    [{ webhook: `${URL_OF_CUSTOMER}\0` }, ODD],
    [{ webhook: `${URL_OF_CUSTOMER}\ud800` }, badUrl("must be well-formed Unicode")],
    [{ webhook: "https://127.0.0.1/" }, inside("loopback")],
    [{ webhook: "https://[::1]/" }, inside("not global unicast")],
    [{ webhook: "https://inside.example/" }, inside("private")],
  ])("%j is refused and changes nothing", async (body, refusal) => {
    await setWebhook({ webhook: URL_OF_CUSTOMER });
    const answer = await setWebhook(body);
    expect({ status: answer.status, body: answer.body }).toStrictEqual({ status: 400, body: refusal });
    expect((await gateway.call("GET", "/organisation")).body).toStrictEqual(organisationRecord(URL_OF_CUSTOMER));
  });

  test("of a name that does not resolve is saved", async () => {
    const webhook = "https://unknown.example/";
    expect(await setWebhook({ webhook })).toMatchObject({ status: 200, body: { webhook } });
  });

  test("may be 2048 bytes long and no longer", async () => {
    const webhook = `https://customer.example/${"a".repeat(2_023)}`;
    expect(await setWebhook({ webhook })).toMatchObject({ status: 200, body: { webhook } });
    const refusal = badUrl("must not be longer than 2048 bytes");
    expect(await setWebhook({ webhook: `${webhook}a` })).toMatchObject({ status: 400, body: refusal });
  });

  test("may be http and private in development, and nothing else is relaxed", async () => {
    await gateway.close();
    gateway = await openGateway({ HEADGATE_DEV: "1" });
    const webhook = "http://127.0.0.1:8080/hook";
    expect(await setWebhook({ webhook })).toMatchObject({ status: 200, body: { webhook } });
    const refusal = badUrl("must not contain a fragment");
    expect(await setWebhook({ webhook: `${webhook}#` })).toMatchObject({ status: 400, body: refusal });
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8", "nonsense"])(
    "is read from a body of type %s",
    async (type) => {
      const answer = await setWebhook({ webhook: URL_OF_CUSTOMER }, { headers: { "content-type": type } });
      expect(answer).toMatchObject({ status: 200, body: { webhook: URL_OF_CUSTOMER } });
    },
  );
});

describe("a new stream", () => {
  test("has exactly the documented record", async () => {
    const { status, body } = await gateway.call("POST", "/stream");
    const { id, ingest } = body as { id: string; ingest: Ingest };
    const { streamname } = ingest.rtmp;
    const url = "rtmp://gateway.example:1935/live";
    const query = `stream_name=${streamname}&stream_url=rtmp%3A%2F%2Fgateway.example%3A1935%2Flive`;
    expect(id).toMatch(UUID);
    expect({ status, body }).toStrictEqual({
      status: 200,
      body: {
        id,
        streamgroup: id,
        state: "created",
        type: "low-latency",
        created_at: START,
        updated_at: START,
        tags: [],
        title: null,
        external_id: null,
        webrtc: true,
        transcoding: false,
        hold_s: null,
        publish_key: null,
        refused_until: null,
        ingest: {
          rtmp: { url, streamname, stream_key: streamname },
          rtmps: null,
          whip: { url: `http://gateway.example/p/webrtc?${query}` },
          key: null,
        },
        playout: { rtmp: [{ url, streamname, type: "live" }], hls: [], web: [] },
      },
    });
    expect((await gateway.call("GET", `/stream/${id}`)).body).toStrictEqual(body);
  });

  test("is named by its organisation, and no other has the same name", async () => {
    const names = await Promise.all(
      Array.from({ length: 30 }, async () => (await createStream()).ingest.rtmp.streamname),
    );
    for (const name of names) expect(name).toMatch(new RegExp(`^${gateway.organisation.hash}-[A-Za-z0-9]{14}$`));
    expect(new Set(names).size).toBe(30);
  });

  test("shows the public URL and the first ingest host of the configuration", async () => {
    await gateway.close();
    gateway = await openGateway({
      HEADGATE_PUBLIC_URL: "https://api.example/",
      HEADGATE_INGEST_HOSTS: "::1,in.example",
    });
    const { rtmp, whip } = (await createStream()).ingest;
    expect(rtmp.url).toBe("rtmp://[::1]:1935/live");
    expect(whip.url).toMatch(/^https:\/\/api\.example\/p\/webrtc\?/);
  });

  test("keeps up to 50 tags of up to 100 characters, and ignores unknown members", async () => {
    const tags = Array.from({ length: 50 }, (_, index) => `${"🎥".repeat(98)}${index}`.slice(0, 198));
    const stream = await createStream({ body: { tags, id: "mine", state: "live", name: "x", __proto__: null } });
    expect(stream).toMatchObject({ tags, state: "created" });
    expect(stream.id).toMatch(UUID);
    expect((await createStream({ body: { tags: ["a".repeat(100)] } })).tags).toEqual(["a".repeat(100)]);
  });

  const NO_TAGS = failure(1004, "Wrong Data Type: tags", { parameter: "tags", type: "array of string" });
  const badTags = (reason: string) => failure(9002, `Invalid value: tags ${reason}`, { parameter: "tags", reason });

  test.each<[what: string, tags: unknown, refusal: object]>([
    ["that are a string", "a", NO_TAGS],
    ["that are an object", { 0: "a" }, NO_TAGS],
    ["of which one is a number", ["a", 1], NO_TAGS],
    ["of which one is null", [null], NO_TAGS],
    ["that are 51", Array(51).fill("a"), badTags("must be at most 50")],
    ["of 101 characters", ["a".repeat(101)], badTags("must not be longer than 100 characters")],
    ["with half a character", ["\ud800"], badTags("must be well-formed Unicode")],
  ])("with tags %s is refused and not created", async (_, tags, refusal) => {
    const { status, body } = await gateway.call("POST", "/stream", { body: { tags } });
    expect({ status, body }).toStrictEqual({ status: 400, body: refusal });
    expect((await gateway.call("GET", "/stream")).body).toStrictEqual([]);
  });

  test("of another organisation is unknown, like one that never existed", async () => {
    const other = await gateway.newOrganisation("Second");
    const key = other.keys.administrator;
    const mine = await createStream();
    const theirs = await createStream({ key });
    expect(theirs.ingest.rtmp.streamname.split("-")[0]).toBe(other.organisation.hash);
    const unknown = { status: 404, body: failure(3001, "Unknown stream") };
    for (const id of [theirs.id, "none", "%00", "%ff", "a".repeat(5_000), "%F0%9F%8E%A5", "'%20or%201=1"]) {
      const { status, body } = await gateway.call("GET", `/stream/${id}`);
      expect({ status, body }).toStrictEqual(unknown);
    }
    expect((await gateway.call("GET", "/stream")).body).toStrictEqual([mine]);
    expect((await gateway.call("GET", "/stream", { key })).body).toStrictEqual([theirs]);
    await setWebhook({ webhook: "https://customer.example/" });
    expect((await gateway.call("GET", "/organisation", { key })).body).toMatchObject({ name: "Second", webhook: null });
  });
});

describe("every response", () => {
  const OVER = "x".repeat(65_537);
  const TOO_LARGE = failure(9413, "Body too large");

  test.each<[method: string, path: string, call: Call, status: number, body: object | null]>([
    ["GET", "/stream", {}, 200, []],
    ["GET", "/stream", { key: null }, 403, DENIED],
    ["GET", "/nowhere", {}, 404, failure(9404, "Unknown address")],
    ["GET", "/stream/a/b", { key: null }, 404, failure(9404, "Unknown address")],
    ["POST", "/organisations", { body: "{" }, 404, failure(9404, "Unknown address")],
    ["PATCH", "/stream", {}, 405, failure(9405, "Method not allowed")],
    ["POST", "/stream", { body: OVER }, 413, TOO_LARGE],
    ["POST", "/stream", { body: OVER, headers: { "content-length": "65537" } }, 413, TOO_LARGE],
    ["POST", "/stream", { body: OVER.slice(1) }, 400, failure(9000, "Malformed JSON")],
    ["HEAD", "/stream", {}, 200, null],
  ])("to %s %s has a request id and the version of the API (case %#)", async (method, path, call, status, body) => {
    const [first, second] = [await gateway.call(method, path, call), await gateway.call(method, path, call)];
    expect({ status: first.status, body: first.body }).toStrictEqual({ status, body });
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(first.headers.get("x-api-version")).toBe("1");
    expect(first.headers.get("x-request-id")).toMatch(UUID);
    expect(first.headers.get("x-request-id")).not.toBe(second.headers.get("x-request-id"));
  });

  test("to a method that an address does not support lists those it does", async () => {
    expect((await gateway.call("POST", "/organisation/webhook")).headers.get("allow")).toBe("PUT, DELETE");
  });

  test("to a failing store is 503 without the reason", async () => {
    const { db, keys } = gateway;
    await db.schema.alterTable("stream").renameTo("elsewhere").execute();
    const { status, body } = await gateway.call("GET", "/stream", { key: keys.user });
    expect({ status, body }).toStrictEqual({ status: 503, body: failure(9503, "Temporarily unavailable") });
    expect(gateway.log()).toMatch(/no such table|does not exist/);
  });
});
