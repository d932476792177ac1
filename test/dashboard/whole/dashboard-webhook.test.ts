// The webhook in the dashboard, with a customer's real HTTPS endpoint: set, tested, changed, removed; its secret; its
// deliveries, why a publish was denied, and the replay of one. Real Chromium, real service, ffmpeg.
import { beforeEach, expect, test } from "vitest";
import { verify } from "../../../ts/client/webhook.ts";
import { until } from "../../support/child.ts";
import { useDashboard } from "../../support/dashboard.ts";
import { broadcast } from "../../support/ffmpeg.ts";

const REASON = "Your subscription ended on 31 May";

const dashboard = useDashboard();
const { open } = dashboard;

beforeEach(async () => {
  dashboard.customer.answer({ status: 200 });
  await dashboard.headgate.call("PUT", "/organisation/webhook", { webhook: dashboard.customer.url });
});

const refuse = () =>
  dashboard.customer.answer({ status: 403, body: `${REASON}\n`, headers: { "content-type": "text/plain" } });

/** A publish that the customer refuses; gives the stream's name. */
async function denied(): Promise<string> {
  refuse();
  const name = await dashboard.headgate.newStream();
  await broadcast(`${dashboard.headgate.rtmp}/${name}?passcode=wrong`, { seconds: 5 }).exit;
  return name;
}

test("the webhook is removed and set again; an invalid address is explained", async () => {
  const { page, ...dash } = await open("/dashboard/webhook", "administrator");
  const address = dashboard.customer.url;
  await dash.press("Remove the webhook");
  await page.getByRole("dialog").getByRole("button", { name: "Remove the webhook" }).click();
  await dash.news("The webhook is removed");
  await page.getByText("No webhook is set").waitFor();
  await dash.press("Set the webhook");
  for (const [given, said] of [
    ["", "The address is missing."],
    ["ftp://customer.example/", "This address cannot be the webhook: "],
    ["https://user:secret@customer.example/", "This address cannot be the webhook: "],
  ] as const) {
    await dash.fill("Address", given);
    await page.keyboard.press("Enter");
    await page.locator(".field-error", { hasText: said }).waitFor();
  }
  await dash.fill("Address", address);
  await dash.press("Save");
  await dash.news("The webhook is saved");
  await page.getByText(address, { exact: true }).waitFor();
  await dash.press("Change the webhook");
  await dash.fill("Address", `${address}&more=1`);
  await dash.press("Save");
  await page.getByText(`${address}&more=1`, { exact: true }).waitFor();
  expect(await dashboard.headgate.call("GET", "/organisation")).toMatchObject({ webhook: `${address}&more=1` });
  expect(await dash.faults()).toEqual([]);
});

test("a second address is set, called, changed to alerts only, and removed; its deliveries are listed apart", async () => {
  const { page, ...dash } = await open("/dashboard/webhook", "administrator");
  const address = `${dashboard.customer.url}&second=1`;
  await dash.press("Set a second address");
  await dash.fill("Second address", "ftp://customer.example/");
  await page.keyboard.press("Enter");
  await page.locator(".field-error", { hasText: "This address cannot be the webhook: " }).waitFor();
  await dash.fill("Second address", address);
  await dash.press("Save");
  await dash.news("The second address is saved");
  await page.getByText(address, { exact: true }).waitFor();
  dashboard.customer.answer({ status: 204 });
  await dash.press("Call the second address");
  await page.getByText("Your second server received the copy.").waitFor();
  await page.getByRole("link", { name: "Its deliveries" }).click();
  await page.getByRole("link", { name: "Publish request" }).waitFor();
  await page.goBack();
  await dash.press("Change the second address");
  await page.getByLabel("It gets").selectOption("alerts");
  await dash.press("Save");
  await page.getByText("alerts only").waitFor();
  expect(await dashboard.headgate.call("GET", "/organisation/webhook/copies")).toMatchObject({ events: "alerts" });
  await dash.press("Remove the second address");
  await page.getByRole("dialog").getByRole("button", { name: "Remove the second address" }).click();
  await dash.news("The second address is removed");
  await page.getByText("No second address is set.").waitFor();
  expect(await dash.faults()).toEqual([]);
});

test("a test call shows what the customer would decide, with status, time and cause of failure", async () => {
  const { page, ...dash } = await open("/dashboard/webhook", "administrator");
  const result = async (answer: Parameters<typeof dashboard.customer.answer>[0]) => {
    dashboard.customer.answer(answer);
    const before = dashboard.customer.calls("publish").length;
    await page.getByRole("button", { name: "Call the webhook" }).click();
    await until("the call", () => dashboard.customer.calls("publish").length > before);
    await page.locator("form .note").waitFor();
    return await dash.says("form .note");
  };
  await dash.fill("Custom arguments", "passcode=s3cret&a=b");
  expect(await result({ status: 200 })).toMatch(/^200 after \d+ ms The publish would be allowed\.$/);
  expect(dashboard.customer.calls("publish").at(-1)?.body).toMatch(/^passcode=s3cret&a=b&call=publish&.*clientid=0$/);
  expect(await result({ status: 403, body: `${REASON}\n`, headers: { "content-type": "text/plain" } })).toMatch(
    new RegExp(`^403 after \\d+ ms Your webhook answered 403, so the publish would be refused\\. ${REASON}$`),
  );
  expect(await result({ status: 302, headers: { location: "https://elsewhere.example/" } })).toContain(
    "Redirects are never followed",
  );
  expect(await result({ status: 500, body: "no database" })).toContain("Your webhook failed (status 500).");
  const link = page.getByRole("link", { name: "The request and your server’s response" });
  expect(await link.getAttribute("href")).toMatch(/^\/dashboard\/deliveries\/msg_\w+$/);
  expect(await result("reset")).toMatch(/^connection lost after \d+ ms The connection was lost/);
});

test("a new secret is shown once, and the customer's calls verify with it", async () => {
  const { page, ...dash } = await open("/dashboard/webhook", "administrator");
  await dash.press("Create a new secret");
  await page.locator("dialog").getByRole("button", { name: "Create a new secret" }).click();
  await page.getByText("This is the new secret. It is shown only once:").waitFor();
  const secret = await dash.says("[aria-label='Webhook secret'] code");
  expect(secret).toMatch(/^whsec_/);
  await dashboard.headgate.call("POST", "/organisation/webhook/test", {});
  const { headers, body } = dashboard.customer.calls("publish").at(-1) ?? { headers: {}, body: "" };
  expect(await verify(headers as Record<string, string>, body, secret)).toMatchObject({ call: "publish", clientid: 0 });
  await page.reload();
  await dash.shows("Webhook");
  await page.getByRole("tab", { name: "Python" }).waitFor();
  expect(await page.content()).not.toContain(secret);
  for (const [tab, code] of [
    ["Python", "hmac.compare_digest"],
    ["PHP", "hash_equals"],
    ["Go", "hmac.Equal"],
  ] as const) {
    await page.keyboard.press("Escape");
    await page.getByRole("tab", { name: tab }).click();
    expect(await dash.says("[role=tabpanel]")).toContain(code);
  }
  await page.keyboard.press("ArrowRight");
  expect(await dash.says("[role=tabpanel]")).toContain("timingSafeEqual");
});

test("the log leads to a denied publish and its reason; the call is sent again under the same id", async () => {
  const name = await denied();
  const { page, ...dash } = await open("/dashboard/deliveries", "administrator");
  await page.getByLabel("Stream name", { exact: true }).fill(name);
  await page.keyboard.press("Enter");
  await page.getByLabel("Outcome", { exact: true }).selectOption("Refused or failed");
  await until("one row", async () => (await page.locator("tbody tr").count()) === 1);
  expect(new URL(page.url()).search).toBe(`?name=${name}&failed=true`);
  expect(await dash.says("tbody tr")).toContain(REASON);
  await dash.press("Publish request");
  await dash.shows("Publish request");
  expect(await dash.says(".note.attention")).toBe(
    `Why this publish did not go ahead: Your webhook refused it and gave a reason. ${REASON}`,
  );
  expect(await dash.says("[aria-label=Request]")).toContain("passcode=***&call=publish");
  const [id] = (await dash.says("[aria-label=About]")).match(/msg_\w+/) ?? [];
  dashboard.customer.answer({ status: 200 });
  const before = dashboard.customer.calls("publish").length;
  await dash.press("Send it again");
  await page.getByText("The publish would be allowed.").waitFor();
  const again = dashboard.customer.calls("publish").slice(before);
  expect(again.map(({ headers }) => headers["webhook-id"])).toEqual([id]);
  expect(again[0]?.body).toContain("passcode=wrong&call=publish");
  expect(await dash.faults()).toEqual([]);
});

test("a webhook that fails is named as what failed, with the body and headers of its response", async () => {
  const [body, headers] = ["<h1>Error</h1>\nno database", { "content-type": "text/html", "set-cookie": "sid=s3cret" }];
  dashboard.customer.answer({ status: 500, body, headers });
  const name = await dashboard.headgate.newStream();
  await broadcast(`${dashboard.headgate.rtmp}/${name}?passcode=wrong`, { seconds: 5 }).exit;
  const { page, ...dash } = await open(`/dashboard/deliveries?name=${name}`, "readonly");
  await page.locator("tbody tr", { hasText: "failed (500)" }).waitFor();
  await dash.press("Publish request");
  await dash.shows("Publish request");
  expect(await dash.says(".note.attention")).toContain("Your webhook failed (status 500).");
  expect(await page.locator("[aria-label=Answer] pre").textContent()).toBe(body);
  await page.getByText("Headers of the response").click();
  expect(await dash.says("[aria-label=Answer] details")).toMatch(/content-type text\/html.*set-cookie \*\*\*/);
  await page.goto(`${dashboard.headgate.http}/dashboard/refusals`);
  await page.locator("tbody tr", { hasText: "Your webhook failed (status 500)." }).first().waitFor();
  expect(await dash.faults()).toEqual([]);
});

test("a link opens the log of one publish; it loads page after page", async () => {
  await denied();
  const { headgate } = dashboard;
  const [latest] = (await headgate.call("GET", "/organisation/webhook/deliveries")) as unknown as {
    clientid: number;
  }[];
  const { page } = await open(`/dashboard/deliveries?clientid=${latest?.clientid}`, "readonly");
  await until("one row", async () => (await page.locator("tbody tr").count()) === 1);
  for (let calls = 0; calls < 55; calls += 1) await headgate.call("POST", "/organisation/webhook/test", {});
  await page.goto(`${headgate.http}/dashboard/deliveries`);
  await until("a page", async () => (await page.locator("tbody tr").count()) === 50);
  await page.getByRole("button", { name: "Show more" }).click();
  await until("the rest", async () => (await page.locator("tbody tr").count()) > 50);
});

test("a delivery that never existed, or belongs to another organisation, is reported as unknown", async () => {
  const { page, ...dash } = await open("/dashboard/deliveries/msg_00000000000000000000000000000000", "readonly");
  await page.getByText("This delivery does not exist or is no longer in the log.").waitFor();
  await dash.press("← Deliveries");
  await dash.shows("Deliveries");
});
