// A webhook's URL may hold a secret in its query: who sees it.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Customer, startCustomer } from "./support/customer.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";
import { trustFile } from "./support/trust-file.ts";

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

  test("administrators see the URL whole, everybody else without its query", async () => {
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

  test("the audit log tells the new and the former URL without their queries", async () => {
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
});
