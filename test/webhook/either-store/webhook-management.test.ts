// The webhook's management: secret, switches, test, deliveries, replay (M7, W9, W12, W15, W16, W26, issue "workbench").
import { Webhook as StandardWebhook } from "standardwebhooks";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Customer, type CustomerRequest, startCustomer } from "../../support/customer.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { trustFile } from "../../support/trust-file.ts";

let customer: Customer;
let gateway: Gateway;

beforeEach(async () => {
  customer = await startCustomer();
  gateway = await openGateway({ HEADGATE_DEV: "1", HEADGATE_WEBHOOK_CA: trustFile(customer.ca) });
});
afterEach(async () => {
  await gateway.close();
  await customer.close();
});

type Json = Record<string, unknown>;
const call = async (method: string, path: string, body?: unknown): Promise<Json> => {
  const answer = await gateway.call(method, path, body === undefined ? {} : { body });
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return answer.body as Json;
};
const setWebhook = () => call("PUT", "/organisation/webhook", { webhook: customer.url });
const newSecret = async () => String((await call("POST", "/organisation/webhook/secret")).secret);
const sendTest = (body: unknown = {}) => call("POST", "/organisation/webhook/test", body);
/** Throws when the request was not signed with the secret. The customer's clock is the test's. */
const verify = (secret: string, request: CustomerRequest | undefined) =>
  new StandardWebhook(secret).verify(request?.body ?? "", request?.headers as Record<string, string>);

describe("the secret", () => {
  beforeEach(() => {
    gateway.clock.ms = Date.now(); // the independent verifier allows five minutes
  });

  test("exists as soon as there is a webhook, and every call is signed", async () => {
    expect((await call("GET", "/organisation")).webhook_secret_set).toBe(false);
    expect((await setWebhook()).webhook_secret_set).toBe(true);
    await sendTest();
    const signature = customer.requests[0]?.headers["webhook-signature"];
    expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
  });

  test("is shown once and verified by an independent library", async () => {
    await setWebhook();
    const secret = await newSecret();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    await sendTest({ arguments: "passcode=s3cret" });
    // The verifier returns the body as JSON; ours is a form.
    expect(() => verify(secret, customer.requests[0])).toThrow(SyntaxError);
    const other = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    expect(() => verify(other, customer.requests[0])).toThrow("No matching signature found");
    const rows = await gateway.db.selectFrom("webhook_secret").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(gateway.log()).not.toContain(secret);
  });

  test("is still used for signatures for a day after its rotation, and no longer", async () => {
    await setWebhook();
    const former = await newSecret();
    const current = await newSecret();
    await sendTest();
    expect(String(customer.requests[0]?.headers["webhook-signature"]).split(" ")).toHaveLength(3);
    for (const secret of [former, current]) {
      expect(() => verify(secret, customer.requests[0])).toThrow(SyntaxError);
    }
    gateway.clock.ms += 24 * 3_600_000;
    await sendTest();
    expect(String(customer.requests[1]?.headers["webhook-signature"]).split(" ")).toHaveLength(1);
    expect(customer.requests[1]?.headers["webhook-timestamp"]).toBe(String(Math.floor(gateway.clock.ms / 1_000)));
  });

  test("is used for a day after its rotation, however often others follow", async () => {
    await setWebhook();
    const secrets = [await newSecret()];
    for (let turn = 0; turn < 5; turn += 1) {
      gateway.clock.ms += 30_000;
      secrets.push(await newSecret());
    }
    await sendTest();
    for (const secret of secrets) expect(() => verify(secret, customer.requests[0])).toThrow(SyntaxError);
    const [first] = String(customer.requests[0]?.headers["webhook-signature"]).split(" ");
    const onlyFirst = { headers: { ...customer.requests[0]?.headers, "webhook-signature": first } };
    expect(() => verify(secrets.at(-1) ?? "", { ...customer.requests[0], ...onlyFirst } as never)).toThrow(SyntaxError);
    gateway.clock.ms += 24 * 3_600_000 - 120_000;
    await sendTest();
    expect(String(customer.requests[1]?.headers["webhook-signature"]).split(" ")).toHaveLength(5);
  });

  test("can be rotated eight times within a day, and then again when the first has expired", async () => {
    for (let turn = 0; turn < 9; turn += 1) await newSecret();
    const refused = await gateway.call("POST", "/organisation/webhook/secret");
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([400, expect.stringContaining("8 times")]);
    gateway.clock.ms += 24 * 3_600_000 + 1;
    await newSecret();
  });

  test("stays unique after concurrent rotations", async () => {
    await setWebhook();
    const secrets = await Promise.all([newSecret(), newSecret(), newSecret()]);
    expect(new Set(secrets).size).toBe(3);
    const current = await gateway.db.selectFrom("webhook_secret").selectAll().where("expires_at", "is", null).execute();
    expect(current).toHaveLength(1);
  });

  test("can be rotated only by an administrator", async () => {
    for (const key of [gateway.keys.user, gateway.keys.readonly]) {
      expect((await gateway.call("POST", "/organisation/webhook/secret", { key })).status).toBe(403);
      expect((await gateway.call("POST", "/organisation/webhook/test", { key })).status).toBe(403);
      expect((await gateway.call("PUT", "/organisation/settings", { key, body: {} })).status).toBe(403);
      expect((await gateway.call("GET", "/organisation/settings", { key })).status).toBe(200);
    }
  });
});

describe("the settings", () => {
  const defaults = {
    publish_on_hook_unreachable: "deny",
    strict_arguments: false,
    require_token: false,
    publish_key: false,
    update_reject_after: 1,
    update_max_unreachable: 0,
    reason_to_broadcaster: true,
    play: "open",
    play_addresses: [],
    max_bitrate_kbps: 0,
    hold_s: null,
    silence_s: 15,
    health_events: false,
    update_fields: [],
  };

  test("have defaults, and a change does not affect the others", async () => {
    expect(await call("GET", "/organisation/settings")).toStrictEqual(defaults);
    await call("PUT", "/organisation/settings", { update_reject_after: 3, update_fields: ["bitrate", "rtt"] });
    const changed = await call("PUT", "/organisation/settings", { publish_on_hook_unreachable: "allow" });
    const expected = { ...defaults, update_reject_after: 3, update_fields: ["bitrate", "rtt"] };
    expect(changed).toStrictEqual({ ...expected, publish_on_hook_unreachable: "allow" });
    expect(await call("GET", "/organisation/settings")).toStrictEqual(changed);
  });

  test.each([
    [{ update_reject_after: "3" }, 1004, "update_reject_after"],
    [{ update_reject_after: 0 }, 9002, "update_reject_after"],
    [{ max_bitrate_kbps: 100_001 }, 9002, "max_bitrate_kbps"],
    [{ update_fields: ["colour"] }, 9002, "update_fields"],
    [{ play: "closed" }, 9002, "play"],
    [{ play_addresses: ["10.0.0.0/33"] }, 9002, "play_addresses"],
    [{ play_addresses: ["host.example"] }, 9002, "play_addresses"],
    [{ publish_on_hook_unreachable: "maybe" }, 9002, "publish_on_hook_unreachable"],
    [{ strict_arguments: null }, 1004, "strict_arguments"],
    [{ strict: true }, 9002, "strict"],
  ])("%j are refused and change nothing", async (body, code, parameter) => {
    const { status, body: answer } = await gateway.call("PUT", "/organisation/settings", { body });
    expect(status).toBe(400);
    expect(answer).toMatchObject({ error: { code, userinfo: { parameter } } });
    expect(await call("GET", "/organisation/settings")).toStrictEqual(defaults);
  });

  test("of one organisation do not affect another's", async () => {
    const other = await gateway.newOrganisation("Other");
    await call("PUT", "/organisation/settings", { strict_arguments: true });
    const { body } = await gateway.call("GET", "/organisation/settings", { key: other.keys.readonly });
    expect(body).toStrictEqual(defaults);
  });
});

describe("a test call", () => {
  test("returns the customer's answer", async () => {
    await setWebhook();
    customer.answer({ status: 403, headers: { "content-type": "text/plain" }, body: "Not today" });
    const told = await sendTest({ arguments: "passcode=s3cret" });
    expect(told).toMatchObject({ outcome: "answered", status: 403, reason: "Not today", allows: false });
    const { hash } = gateway.organisation;
    expect(customer.requests[0]?.body).toBe(
      `passcode=s3cret&call=publish&name=${hash}-TEST0&app=live&addr=192.0.2.1&clientid=0`,
    );
    customer.answer({ status: 200 });
    expect(await sendTest()).toMatchObject({ status: 200, allows: true });
    customer.answer("reset");
    expect(await sendTest()).toMatchObject({ outcome: "connection", status: null, allows: false });
  });

  test("requires a webhook and arguments that a publish could have", async () => {
    expect((await gateway.call("POST", "/organisation/webhook/test", { body: {} })).status).toBe(404);
    await setWebhook();
    for (const custom of [1, "call=x", "a\nb", "x".repeat(2_049)]) {
      const body = { arguments: custom };
      expect((await gateway.call("POST", "/organisation/webhook/test", { body })).status).toBe(400);
    }
    expect(customer.requests).toHaveLength(0);
  });
});

describe("deliveries", () => {
  const list = async (query = "") =>
    (await gateway.call("GET", `/organisation/webhook/deliveries${query}`)).body as Json[];

  test("are listed newest first with secrets masked, and filtered", async () => {
    await setWebhook();
    await sendTest({ arguments: "passcode=s3cret&lonely" });
    gateway.clock.ms += 1_000;
    customer.answer({ status: 500 });
    await sendTest();
    const found = await list();
    expect(found).toHaveLength(2);
    expect(found[1]).toMatchObject({
      id: customer.requests[0]?.headers["webhook-id"],
      call: "publish",
      outcome: "answered",
      status: 200,
      attempts: 1,
      request: { url: customer.url, body: expect.stringMatching(/^passcode=\*\*\*&\*\*\*&call=publish&name=/) },
    });
    expect(JSON.stringify(found)).not.toMatch(/s3cret|lonely/);
    expect((await list("?failed=true")).map(({ status }) => status)).toEqual([500]);
    expect(await list("?quantity=1")).toHaveLength(1);
    expect(await list("?call=publish_done")).toEqual([]);
    expect(await list("?clientid=0")).toHaveLength(2);
    expect(await list("?name=a%00b")).toEqual([]);
  });

  test.each(["quantity=0", "quantity=x", "call=play", "clientid=-1", "before=soon"])("refuse %s", async (query) => {
    const answer = await gateway.call("GET", `/organisation/webhook/deliveries?${query}`);
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 9002 } } });
  });

  test("are replayed with the same body and id, to the current webhook", async () => {
    await setWebhook();
    customer.answer({ status: 500 });
    const { id } = await sendTest({ arguments: "passcode=s3cret" });
    customer.answer({ status: 200 });
    await call("PUT", "/organisation/webhook", { webhook: `${customer.url}&moved=1` });
    const again = await call("POST", `/organisation/webhook/deliveries/${id}/replay`);
    expect(again).toMatchObject({ id, status: 200 });
    const [first, second] = customer.requests;
    expect(second?.body).toBe(first?.body);
    expect(second?.headers["webhook-id"]).toBe(id);
    expect(second?.path).toMatch(/moved=1$/);
    expect(await call("GET", `/organisation/webhook/deliveries/${id}`)).toMatchObject({ attempts: 2, status: 200 });
  });

  test("are not replayed when that cannot be recorded", async () => {
    await setWebhook();
    const { id } = await sendTest();
    await gateway.db.schema.dropTable("audit").execute();
    expect((await gateway.call("POST", `/organisation/webhook/deliveries/${id}/replay`)).status).toBe(503);
    expect(customer.requests).toHaveLength(1);
  });

  test("of another organisation are unknown", async () => {
    await setWebhook();
    const { id } = await sendTest();
    const { keys } = await gateway.newOrganisation("Other");
    const key = keys.administrator;
    expect((await gateway.call("GET", `/organisation/webhook/deliveries/${id}`, { key })).status).toBe(404);
    expect((await gateway.call("POST", `/organisation/webhook/deliveries/${id}/replay`, { key })).status).toBe(404);
    expect((await gateway.call("GET", "/organisation/webhook/deliveries", { key })).body).toEqual([]);
    expect((await gateway.call("GET", "/organisation/webhook/deliveries/msg_none")).status).toBe(404);
    expect((await gateway.call("GET", "/organisation/webhook/deliveries/a%00b")).status).toBe(404);
  });
});
