// Lists of the command line beyond their first page, and the filters of deliveries: real service, real commands.
import { afterAll, beforeAll, expect, test } from "vitest";
import { command } from "../support/command.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";

let customer: Customer;
let headgate: Headgate;
beforeAll(async () => {
  customer = await startCustomer();
  headgate = await startHeadgate({ customer });
  for (let at = 0; at < 25; at += 1) await headgate.call("POST", "/stream", { title: `number ${at}` });
  customer.answer({ status: 500 });
  for (let at = 0; at < 3; at += 1) await headgate.call("POST", "/organisation/webhook/test", {});
}, 120_000);
afterAll(async () => {
  await headgate?.stop();
  await customer?.close();
});

const said = (...words: string[]) =>
  command([...words, "--url", headgate.http], { ...headgate.env, HEADGATE_API_KEY: headgate.apiKey });
const lines = ({ out }: { readonly out: string }) => out.trim().split("\n");

test("audit shows 20 entries and says that there are more, as many as asked for, or all", async () => {
  const first = lines(await said("audit"));
  expect(first).toHaveLength(22); // with the heading
  expect(first.at(-1)).toBe("There are more: --quantity N, or --all");
  const created = ["audit", "--action", "stream.create"];
  const all = lines(await said(...created, "--all"));
  expect(all.filter((line) => line.includes("stream.create"))).toHaveLength(25);
  expect(all.at(-1)).not.toContain("There are more");
  const some = JSON.parse((await said(...created, "--quantity", "23", "--json")).out);
  expect(some).toHaveLength(23);
  expect(await said("audit", "--quantity", "0")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--quantity must be a whole number of at least 1"),
  });
}, 60_000);

test("usage has all its rows, and the totals", async () => {
  const usage = JSON.parse((await said("usage", "--all", "--json")).out);
  expect(usage).toMatchObject({ total: { bytes_in: 0 }, days: [], has_more: false });
}, 60_000);

test("deliveries are filtered by event, publish and time, and failures are the webhook's", async () => {
  const deliveries = ["webhook", "deliveries"];
  const found = lines(await said(...deliveries, "--call", "publish", "--client-id", "0", "--all"));
  expect(found).toHaveLength(3);
  expect(found[0]).toContain("failed with 500");
  expect(lines(await said(...deliveries, "--quantity", "2"))).toHaveLength(3);
  for (const none of [
    ["--client-id", "1"],
    ["--call", "publish_done"],
    ["--to", "2020-01-01T00:00:00Z"],
  ]) {
    expect((await said(...deliveries, ...none)).out).toBe("");
  }
  expect(await said(...deliveries, "--call", "play")).toMatchObject({
    code: 1,
    err: expect.stringContaining("call"),
  });
}, 60_000);

test("help shows the type of each argument", async () => {
  const { out } = await said("serve", "--help");
  expect(out).toMatch(/--http-port <number>/);
  expect(out).toMatch(/--dev \[on\|off\]/);
  expect(out).toMatch(/--publish-duplicate <reject_if_active\|replace>/);
  expect(out).toMatch(/--http-trusted-proxies <a,b,…>/);
  expect(out).toMatch(/--data-dir <text>/);
}, 60_000);
