// The links and tokens of a stream in the dashboard: created, listed with who created them, and revoked. Real Chromium,
// real service.
import axe from "axe-core";
import { expect, test, vi } from "vitest";
import { until } from "../support/child.ts";
import { PEOPLE, useDashboard } from "../support/dashboard.ts";

vi.setConfig({ testTimeout: 90_000 });

const dashboard = useDashboard();

interface Stream {
  readonly id: string;
  readonly ingest: { readonly rtmp: { readonly url: string; readonly streamname: string } };
}
const newStream = async () => (await dashboard.headgate.call("POST", "/stream")) as unknown as Stream;

async function verified(token: string): Promise<boolean> {
  const body = JSON.stringify({ token });
  return (await fetch(`${dashboard.headgate.http}/webcaster/verify`, { method: "POST", body })).ok;
}

test("a link is listed with who created it, and an administrator revokes it after a question, or all at once", async () => {
  const stream = await newStream();
  const { page, ...dash } = await dashboard.open(`/dashboard/streams/${stream.id}?tab=links`, "administrator");
  await page.getByText("No links or tokens yet").waitFor();
  await dash.press("Create the link");
  const group = page.getByRole("group", { name: "Web token" });
  const token = await group.locator("code").innerText();
  const rows = page.getByRole("table", { name: "Links and tokens" }).locator("tbody tr");
  await until("its row", async () => (await rows.count()) === 1);
  expect((await rows.first().innerText()).replaceAll(/\s+/g, " ")).toMatch(
    new RegExp(`Broadcast link By ${PEOPLE.administrator}.* Valid .* never`, "s"),
  );
  const { streamname, url } = stream.ingest.rtmp;
  const made = await dashboard.headgate.call("POST", "/webcaster", { streamname, ingesturl: url });
  const second = (made as unknown as { data: { token: string } }).data.token;
  await dash.press("Refresh");
  await until("both rows", async () => (await rows.count()) === 2);
  expect(await rows.first().innerText()).toMatch(/By the key/);

  const asked = page.getByRole("dialog", { name: "Revoke the broadcast link?" });
  await rows
    .last()
    .getByRole("button", { name: /^Revoke/ })
    .click();
  await asked.getByRole("button", { name: "Cancel" }).click();
  expect(await verified(token)).toBe(true);
  await rows
    .last()
    .getByRole("button", { name: /^Revoke/ })
    .click();
  await asked.getByRole("button", { name: "Revoke it" }).click();
  await dash.news("is revoked");
  await until("its state", async () => /Revoked/.test(await rows.last().innerText()));
  expect([await verified(token), await verified(second)]).toEqual([false, true]);

  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(serious.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html)}`)).toEqual([]);

  await dash.press("Revoke all");
  await page.getByRole("dialog").getByRole("button", { name: "Revoke all" }).click();
  await dash.news("All links and tokens");
  expect(await verified(second)).toBe(false);
  await until("none is valid", async () => (await page.getByText("Valid", { exact: true }).count()) === 0);
  expect(await dash.faults()).toEqual([]);
});

test("a user sees the list and cannot revoke; a reader sees none", async () => {
  const stream = await newStream();
  const path = `/dashboard/streams/${stream.id}?tab=links`;
  const { page, ...dash } = await dashboard.open(path, "user");
  await dash.press("Create the link");
  await page.getByRole("table", { name: "Links and tokens" }).waitFor();
  expect(await page.getByRole("button", { name: /^Revoke/ }).count()).toBe(0);
  const reader = await dashboard.open(path, "readonly");
  await reader.shows(stream.ingest.rtmp.streamname);
  expect(await reader.page.getByText("Links and tokens").count()).toBe(0);
});

test("links and addresses valid for a year can be created although the browser's clock is ahead", async () => {
  const stream = await newStream();
  const { page, ...dash } = await dashboard.open("/dashboard/account", "user");
  await page.addInitScript("Date.now = ((exact) => () => exact() + 5_000)(Date.now);");
  await page.goto(`${dashboard.headgate.http}/dashboard/streams/${stream.id}?tab=links`);
  await page.getByLabel("Valid for").selectOption("1 year");
  await dash.press("Create the link");
  await page.getByRole("group", { name: "Broadcast link" }).waitFor();
  await page.getByLabel(/^Play the stream/).check();
  await dash.press("Create the address");
  await page.getByRole("group", { name: "Address for players" }).waitFor();
  expect(await dash.faults()).toEqual([]);
});

test("all links of a person are found by who created them, whatever the stream, and are revoked there", async () => {
  const [one, other] = [await newStream(), await newStream()];
  const byBen = await dashboard.open("/dashboard/account", "user");
  for (const { ingest } of [one, other]) {
    const { streamname, url } = ingest.rtmp;
    expect(await byBen.call("POST", "/webcaster", { streamname, ingesturl: url })).toBe(200);
    await dashboard.headgate.call("POST", "/webcaster", { streamname, ingesturl: url });
  }
  const { page, ...dash } = await dashboard.open("/dashboard/links", "administrator");
  await dash.shows("Links");
  const row = (stream: Stream) =>
    page.getByRole("row").filter({ hasText: stream.ingest.rtmp.streamname }).filter({ hasText: "Valid" });
  await until("all of them", async () => (await row(one).count()) === 2);
  await page.getByLabel("Created by").selectOption(PEOPLE.user);
  await until("Ben's", async () => (await row(one).count()) === 1 && (await row(other).count()) === 1);
  await row(other)
    .getByRole("button", { name: /^Revoke/ })
    .click();
  await dash.press("Revoke it");
  await until("it is revoked", async () => (await row(other).count()) === 0);
  expect(await row(one).count()).toBe(1);
  await page.getByRole("link", { name: one.ingest.rtmp.streamname }).first().click();
  await dash.shows(one.ingest.rtmp.streamname);
  expect(new URL(page.url()).searchParams.get("tab")).toBe("links");
  expect(await dash.faults()).toEqual([]);
});
