// What the delivery log keeps of a customer's response: status, header fields without secrets, and the start of the body
// as text. What the webhook failed with is said to be the webhook's, and the broadcaster hears nothing of it.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KeptResponse, responseText } from "../../ts/publish/webhook/kept-response.ts";
import { refusalWords } from "../../ts/text/refusal-words.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { trustFile } from "../support/trust-file.ts";

const NOTHING_SENT = { url: "https://customer.example/", body: "call=publish" };

function kept(
  headers: Readonly<Record<string, string | string[]>>,
  body: string | Buffer = "",
  sent: Parameters<typeof responseText>[1] = NOTHING_SENT,
) {
  const response = new KeptResponse(headers);
  response.add(Buffer.from(body as string));
  response.end(true);
  return JSON.parse(responseText(response.read(), sent));
}

describe("of a response", () => {
  test("values of unknown header fields are masked, and fields are bounded", () => {
    const { headers } = kept({
      "content-type": "text/html",
      "set-cookie": ["sid=s3cret", "other=s3cret"],
      "x-api-key": "s3cret",
      location: "https://user:pw@login.example/next?ticket=s3cret",
    });
    expect(headers).toEqual([
      ["content-type", "text/html"],
      ["set-cookie", "***"],
      ["set-cookie", "***"],
      ["x-api-key", "***"],
      ["location", "https://…@login.example/next?…"],
    ]);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`x-${at}`, "y".repeat(5_000)]));
    expect(JSON.stringify(kept(many).headers).length).toBeLessThan(4_000);
    expect(JSON.stringify(kept({ server: "z".repeat(60_000) }).headers).length).toBeLessThan(4_000);
  });

  test("the first 2 kB of the body are kept, whole characters of them", () => {
    expect(kept({}, "x".repeat(2_000))).toMatchObject({ body: "x".repeat(2_000), is_cut: false });
    expect(kept({}, "x".repeat(2_001))).toMatchObject({ body: "x".repeat(2_000), is_cut: true });
    expect(kept({}, `x${"é".repeat(1_000)}`)).toMatchObject({ body: `x${"é".repeat(999)}`, is_cut: true });
    const binary = kept({}, Buffer.alloc(5_000, 0xff)).body;
    expect(Buffer.byteLength(binary)).toBeLessThanOrEqual(2_000);
  });

  test("control characters are left out, and so is a compressed body", () => {
    expect(kept({}, "a\0b\u001b[31mc\r\nd\te\u202ef").body).toBe("ab[31mc\nd\tef");
    expect(kept({ "content-encoding": "gzip" }, "\u001f\u008b")).toMatchObject({ body: null });
  });

  test("custom arguments and the query of the URL are masked where the server repeats them", () => {
    const sent = { url: "https://customer.example/hook?auth=t0ken", body: "passcode=s%20cret&alone&call=publish" };
    const { body, headers } = kept(
      { server: "t0ken" },
      "bad passcode 's cret' (s%20cret), alone, at /hook?auth=t0ken for publish",
      sent,
    );
    expect(body).toBe("bad passcode '***' (***), ***, at /hook?auth=*** for publish");
    expect(headers).toEqual([["server", "***"]]);
  });
});

test("a status of 500 is the webhook's failure, 403 its decision", () => {
  expect(refusalWords("rejected_by_customer", 500).happened).toBe("Your webhook failed (status 500).");
  expect(refusalWords("rejected_by_customer", 403).happened).toBe("Your webhook denied it (status 403).");
  expect(refusalWords("rejected_by_customer", 404).happened).toContain("status 404; only 200 allows");
});

describe("the delivery", () => {
  let customer: Customer;
  let gateway: Gateway;
  beforeEach(async () => {
    customer = await startCustomer();
    gateway = await openGateway({ HEADGATE_DEV: "1", HEADGATE_WEBHOOK_CA: trustFile(customer.ca) });
    await gateway.call("PUT", "/organisation/webhook", { body: { webhook: customer.url } });
  });
  afterEach(async () => {
    await gateway.close();
    await customer.close();
  });
  const sendTest = () => gateway.call("POST", "/organisation/webhook/test", { body: {} });
  const latest = async () => {
    const { body } = await gateway.call("GET", "/organisation/webhook/deliveries?quantity=1");
    const [delivery] = body as { readonly response: { readonly body: string; readonly is_cut: boolean } }[];
    return delivery;
  };

  test("has the status, headers and body of the response", async () => {
    customer.answer({ status: 500, headers: { "content-type": "text/plain", "x-key": "s3cret" }, body: "no database" });
    await sendTest();
    const delivery = await latest();
    expect(delivery).toMatchObject({ status: 500, response: { body: "no database", is_cut: false } });
    const headers = JSON.stringify(delivery?.response);
    expect(headers).toContain('{"name":"content-type","value":"text/plain"}');
    expect(headers).not.toContain("s3cret");
  });

  test("has null where there was no response", async () => {
    customer.answer("reset");
    await sendTest();
    expect(await latest()).toMatchObject({ status: null, response: null });
  });
});
