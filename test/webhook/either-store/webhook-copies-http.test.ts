// /organisation/webhook/copies: the second webhook is set, tested, its secret rotated, and removed, by those who may.
import { Webhook as StandardWebhook } from "standardwebhooks";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { trustFile } from "../../support/trust-file.ts";

const PATH = "/organisation/webhook/copies";

let second: Customer;
let gateway: Gateway;

beforeEach(async () => {
  second = await startCustomer();
  gateway = await openGateway({ HEADGATE_DEV: "1", HEADGATE_WEBHOOK_CA: trustFile(second.ca) });
});
afterEach(async () => {
  await gateway.close();
  await second.close();
});

const set = (body: object, key?: string) => gateway.call("PUT", PATH, { body, ...(key && { key }) });
const shown = async (key?: string) => (await gateway.call("GET", PATH, key === undefined ? {} : { key })).body;

test("there is none at first; it is set, changed and removed, and each change is audited", async () => {
  const none = { webhook: null, events: "all", secret_set: false, failure: null };
  expect(await shown()).toEqual(none);
  const all = { webhook: second.url, events: "all", secret_set: true, failure: null };
  expect(await set({ webhook: second.url })).toMatchObject({ status: 200, body: all });
  expect((await set({ webhook: second.url, events: "alerts" })).body).toEqual({ ...all, events: "alerts" });
  // What it gets stays as it was.
  expect((await set({ webhook: `${second.url}&more=1` })).body).toMatchObject({ events: "alerts" });
  expect((await gateway.call("DELETE", PATH)).body).toEqual({ ...none, secret_set: true });
  const { body } = await gateway.call("GET", "/organisation/audit?action=webhook");
  const entries = body as { readonly action: string; readonly detail: object }[];
  expect(entries.map(({ action }) => action)).toEqual([
    "webhook.copies.remove",
    "webhook.copies.set",
    "webhook.copies.set",
    "webhook.copies.set",
  ]);
  expect(JSON.stringify(entries)).not.toContain("webhook-secret"); // the query of its address
  // The webhook itself has not changed.
  expect((await gateway.call("GET", "/organisation")).body).toMatchObject({ webhook: null });
});

test("addresses are refused that are refused for the webhook, and so are other callers", async () => {
  for (const webhook of ["ftp://customer.example/", "https://user:secret@customer.example/", "no address"]) {
    expect((await set({ webhook })).status).toBe(400);
  }
  expect((await set({ webhook: second.url, events: "some" })).status).toBe(400);
  expect((await set({ webhook: second.url }, gateway.keys.user)).status).toBe(403);
  await set({ webhook: second.url });
  expect(await shown(gateway.keys.readonly)).toMatchObject({ webhook: `${second.url.split("?")[0]}?…` });
  const other = await gateway.newOrganisation("Other");
  expect(await shown(other.keys.administrator)).toMatchObject({ webhook: null });
});

test("a test call is signed with its own secret, which is still used for a day after a rotation", async () => {
  gateway.clock.ms = Date.now(); // the independent verifier allows five minutes
  expect((await gateway.call("POST", `${PATH}/test`, { body: {} })).status).toBe(404);
  await set({ webhook: second.url });
  const rotate = async () => {
    const { body } = await gateway.call("POST", `${PATH}/secret`);
    return (body as { readonly secret: string }).secret;
  };
  const [former, current] = [await rotate(), await rotate()];
  second.answer({ status: 500 });
  expect((await gateway.call("POST", `${PATH}/test`, { body: {} })).body).toMatchObject({ status: 500, allows: false });
  const [request] = second.requests;
  const verify = (secret: string) =>
    new StandardWebhook(secret).verify(request?.body ?? "", request?.headers as Record<string, string>);
  // The verifier returns the body as JSON; ours is a form.
  for (const secret of [former, current]) expect(() => verify(secret)).toThrow(SyntaxError);
  const { body } = await gateway.call("POST", "/organisation/webhook/secret");
  expect(() => verify((body as { readonly secret: string }).secret)).toThrow("No matching signature found");
  // Its log is its own, and its failure is shown.
  const list = async (query: string) => (await gateway.call("GET", `/organisation/webhook/deliveries${query}`)).body;
  expect(await list("?copies=true")).toMatchObject([{ is_copy: true, status: 500 }]);
  expect(await list("")).toEqual([]);
  expect(await shown()).toMatchObject({ failure: { call: "publish", outcome: "answered", status: 500 } });
  expect((await gateway.call("GET", "/organisation/status")).body).toMatchObject({ webhook_failure: null });
});
