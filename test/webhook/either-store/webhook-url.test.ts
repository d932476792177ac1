// A webhook's URL may contain a secret in its query: who sees it, and what is reset when another URL replaces
// it.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OPEN_AFTER } from "../../../ts/publish/webhook/customer-gate.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { openStage, STREAM, type Stage, until } from "../../support/publishing.ts";
import { trustFile } from "../../support/trust-file.ts";

const SECRET = "webhook-secret";

let customer: Customer;

beforeEach(async () => {
  customer = await startCustomer();
});
afterEach(() => customer.close());

describe("over HTTP", () => {
  let gateway: Gateway;

  beforeEach(async () => {
    gateway = await openGateway({
      HEADGATE_DEV: "1",
      HEADGATE_WEBHOOK_CA: trustFile(customer.ca),
      HEADGATE_WEBHOOK_DEADLINE_MS: "500",
    });
  });
  afterEach(() => gateway.close());

  const set = (webhook: string | null) => gateway.call("PUT", "/organisation/webhook", { body: { webhook } });
  const sendTest = async () => (await gateway.call("POST", "/organisation/webhook/test", { body: {} })).body;
  const scopedKey = async (role: string) => {
    const { body } = await gateway.call("POST", "/organisation/key", { body: { role, scope_tag: "studio" } });
    return (body as { key: string }).key;
  };

  test("administrators see the whole URL, everybody else sees it without its query", async () => {
    expect(await set(customer.url)).toMatchObject({ status: 200, body: { webhook: customer.url } });
    await sendTest();
    const masked = customer.url.replace(`key=${SECRET}`, "…");
    const { user, readonly, administrator } = gateway.keys;
    const seen = async (key: string) => ({
      organisation: (await gateway.call("GET", "/organisation", { key })).body,
      deliveries: (await gateway.call("GET", "/organisation/webhook/deliveries", { key })).body,
    });
    expect(await seen(administrator)).toMatchObject({
      organisation: { webhook: customer.url },
      deliveries: [{ request: { url: customer.url } }],
    });
    for (const key of [user, readonly]) {
      const answers = await seen(key);
      expect(answers).toMatchObject({ organisation: { webhook: masked }, deliveries: [{ request: { url: masked } }] });
      const [{ id } = { id: "" }] = answers.deliveries as { id: string }[];
      const one = (await gateway.call("GET", `/organisation/webhook/deliveries/${id}`, { key })).body;
      expect(one).toMatchObject({ request: { url: masked } });
      expect(JSON.stringify([answers, one])).not.toContain(SECRET);
    }
    for (const role of ["administrator", "user", "readonly"]) {
      const { organisation } = await seen(await scopedKey(role));
      expect(organisation).toMatchObject({ webhook: masked });
    }
  });

  test("the audit log contains the new and the former URL without their queries", async () => {
    await set("https://customer.example/first?key=first-secret");
    await set("https://customer.example/second?key=second-secret&more");
    await set(null);
    const { body } = await gateway.call("GET", "/organisation/audit");
    const [first, second] = ["https://customer.example/first?…", "https://customer.example/second?…"];
    const origin = "https://customer.example";
    expect((body as { detail: object }[]).map(({ detail }) => detail)).toEqual([
      { origin: null, webhook: null, former: second },
      { origin, webhook: second, former: first },
      { origin, webhook: first, former: null },
    ]);
    expect(JSON.stringify(await gateway.db.selectFrom("audit").selectAll().execute())).not.toMatch(/-secret/);
    expect(gateway.log()).not.toMatch(/-secret/);
  });

  test("another URL of the same server starts with a closed breaker, the same URL keeps its own", async () => {
    await set(customer.url);
    customer.answer("hang");
    await Promise.all(Array.from({ length: OPEN_AFTER }, sendTest));
    customer.answer({ status: 200 });
    expect(await sendTest()).toMatchObject({ outcome: "breaker_open" });
    await set(customer.url);
    expect(await sendTest()).toMatchObject({ outcome: "breaker_open" });
    await set(`${customer.url}&moved=1`);
    expect(await sendTest()).toMatchObject({ status: 200 });
    await set(customer.url);
    expect(await sendTest()).toMatchObject({ status: 200 });
  });
});

describe("while publishes run", () => {
  let stage: Stage;

  const open = async (deadlineMs: number) => {
    const settings = { updateSeconds: 0.02, deadlineMs };
    stage = await openStage({ webhook: customer.url, ca: customer.ca, settings });
  };
  afterEach(() => stage.close());

  const isOpen = async () => (await stage.metrics.registry.metrics()).includes('breaker_open{organisation="org1"} 1');
  const move = async (webhook: string | null) => {
    await stage.db.updateTable("organisation").set({ webhook }).where("id", "=", "org1").execute();
    await stage.change({}); // the next call reads the organisation again
    stage.publishing.workbench.webhookChanged("org1", webhook);
  };

  test.each([
    ["replaced", "&moved=1"],
    ["removed", null],
  ])("the open breaker of a webhook that was %s is removed from the metrics permanently", async (_, suffix) => {
    await open(200);
    await stage.allowed(STREAM);
    customer.answer("hang");
    await until(isOpen);
    await move(suffix === null ? null : customer.url + suffix);
    expect(await isOpen()).toBe(false);
    // The publish still calls the webhook that it began with, and opens that one's breaker again.
    const former = () => customer.calls("update_publish").filter(({ path }) => !path.includes("moved")).length;
    const before = former();
    await until(() => former() >= before + OPEN_AFTER);
    await until(() => stage.log().split("webhook only times out").length > 2);
    expect(await isOpen()).toBe(false);
  });

  test("ends for the new webhook are sent while those for the former one wait behind its breaker", async () => {
    await open(2_000);
    const moved = `${customer.url}&moved=1`;
    customer.answer(({ path }) => (path.includes("moved") ? { status: 200 } : "hang"));
    await move(moved);
    const event = (clientId: number, url: string) => ({
      organisation_id: "org1",
      next_attempt_at: stage.clock.ms,
      created_at: stage.clock.ms,
      id: `msg_${clientId}`,
      client_id: clientId,
      url,
      body: `call=publish_done&name=n&clientid=${clientId}`,
    });
    const deliver = async (...rows: ReturnType<typeof event>[]) => {
      await stage.db.insertInto("outbox").values(rows).execute();
      await stage.publishing.takeOver("gateway_restarted");
    };
    await deliver(...Array.from({ length: 40 }, (_, at) => event(900_000 + at, customer.url)));
    await until(() => stage.log().includes("webhook only times out"));
    await deliver(event(950_000, moved));
    await until(() => {
      stage.clock.ms += 100; // a late delivery on a busy machine is retried
      return customer.calls("publish_done").some(({ body }) => body.endsWith("clientid=950000"));
    });
    expect(await isOpen()).toBe(false);
  });
});
