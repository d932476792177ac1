// Accessibility and layout of every dashboard page: axe finds nothing serious in either colour scheme, and a
// phone of 360 px scrolls in one direction only; dialogs and the menu included. Real Chromium, real service.
import { readFileSync } from "node:fs";
import axe from "axe-core";
import { PNG } from "pngjs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { type Dashboard, type DashboardPage, startDashboard } from "../../support/dashboard.ts";
import { broadcast } from "../../support/ffmpeg.ts";

const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1_280, height: 860 };

let dashboard: Dashboard;
let found: string[] = [];
/** Id of a stream with refusals. */
let locked = "";

beforeAll(async () => {
  dashboard = await startDashboard();
  const { headgate, customer } = dashboard;
  await headgate.call("POST", "/stream", { tags: ["a-rather-long-tag-of-a-studio-somewhere-without-any-space-in-it"] });
  const label = "A label that is as long as labels of real people are now and then, and without end";
  await headgate.call("POST", "/organisation/key", { role: "user", label, scope_tag: "studio-1" });
  await headgate.call("POST", "/organisation/webhook/test", { arguments: `token=${"x".repeat(600)}` });
  customer.answer("reset");
  await headgate.call("POST", "/organisation/webhook/test", {});
  customer.answer({ status: 200 });
  const { id, ingest } = (await headgate.call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  await headgate.call("PUT", `/stream/${id}/lock`);
  await headgate.call("PUT", "/organisation/webhook/copies", { webhook: `${customer.url}&copies=${"y".repeat(300)}` });
  const png = PNG.sync.write(new PNG({ width: 400, height: 40 })).toString("base64");
  await headgate.call("PUT", "/organisation/logo", { png });
  await headgate.call("POST", `/stream/${id}/play-token`);
  for (const given of [label, null]) {
    const upstream = { url: `rtmp://127.0.0.1:1/live/key-${given === null}`, label: given };
    const { id: upstreamId } = await headgate.call("POST", `/stream/${id}/upstream`, upstream);
    if (given === null) await headgate.call("PUT", `/stream/${id}/upstream/${upstreamId}/pause`);
  }
  for (const name of [ingest.rtmp.streamname, ingest.rtmp.streamname, `A-${"n".repeat(90)}`])
    await broadcast(`${headgate.rtmp}/${name}`, { seconds: 2 }).exit;
  await until("the refusals", async () => {
    const refusals = (await headgate.call("GET", "/refusal")) as unknown as readonly { readonly count: number }[];
    return refusals.reduce((sum, { count }) => sum + count, 0) === 3;
  });
  locked = id;
}, 90_000);
afterAll(() => dashboard?.close());

/** Only colours differ between the schemes. */
const RUNS = { light: "axe.run()", dark: `axe.run({ runOnly: ["color-contrast", "link-in-text-block"] })` } as const;

/** Checks the page as it is now, in both schemes. */
async function judge({ page }: Pick<DashboardPage, "page">, what: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const { violations } = (await page.evaluate(RUNS[colorScheme])) as axe.AxeResults;
    for (const { id, impact, nodes } of violations) {
      if (impact !== "serious" && impact !== "critical") continue;
      found.push(`${what}, ${colorScheme}: ${id} ${nodes.map(({ html }) => html).join(" ")}`);
    }
  }
  await page.setViewportSize(PHONE);
  const beyond = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
  if (beyond !== 0) found.push(`${what}: ${beyond} px beyond ${PHONE.width} px`);
  await page.setViewportSize(DESKTOP);
}

async function openForAxe(path: string, as: Parameters<Dashboard["open"]>[1]): Promise<DashboardPage> {
  const dash = await dashboard.open(path, as, { viewport: DESKTOP });
  await dash.page.locator("h1").waitFor();
  await dash.page.evaluate(axe.source);
  found = [];
  return dash;
}

test("the login passes, also after a refusal", async () => {
  const { page, ...dash } = await openForAxe("/dashboard/", null);
  await judge({ page }, "login");
  await dash.fill("E-mail address", "nobody@customer.example");
  await dash.fill("Password", "wrong");
  await dash.press("Sign in");
  await page.locator(".note.bad").waitFor();
  await judge({ page }, "login refused");
  expect(found).toEqual([]);
  await page.context().close();
  const { hash } = await dashboard.headgate.call("GET", "/organisation");
  for (const path of [`sign-in/${hash}`, "new-password#token"]) {
    const other = await openForAxe(`/dashboard/${path}`, null);
    await judge(other, path);
    expect(found).toEqual([]);
    await other.page.context().close();
  }
});

/** The path of every page, from the table that the dashboard itself has. */
const PATHS = [...readFileSync("ts/dashboard/pages.ts", "utf8").matchAll(/\bpath: "([^"]+)"/g)].map(
  ([, path = ""]) => path,
);

/** Navigates within the page: axe stays loaded, and the router is exercised. */
async function goTo({ page, says }: DashboardPage, path: string): Promise<void> {
  const before = await says("h1");
  await page.evaluate(`history.pushState(null, "", "${path}"); dispatchEvent(new PopStateEvent("popstate"))`);
  await until(path, async () => (await says("h1")) !== before && (await page.locator(".loading").count()) === 0);
}

test("every page passes as administrator", async () => {
  const deliveries = await dashboard.headgate.call("GET", "/organisation/webhook/deliveries");
  const [{ id: delivery }] = deliveries as unknown as readonly [{ readonly id: string }];
  const { page, ...dash } = await openForAxe("/dashboard/nowhere", "administrator");
  await judge({ page }, "nowhere");
  expect(PATHS.length).toBeGreaterThan(14);
  for (const path of PATHS) {
    const of = path.replace("streams/:id", `streams/${locked}`).replace("deliveries/:id", `deliveries/${delivery}`);
    await goTo({ page, ...dash }, of);
    await judge({ page }, path);
  }
  expect(found).toEqual([]);
  expect(await dash.faults()).toEqual([]);
  await page.context().close();
}, 180_000);

/** Marks what the keyboard must reach, and gives its number; of a group of radio buttons one is reached. */
const MARK = `(() => {
  const all = [...document.querySelectorAll("main :is(a, button, input, select, textarea, summary)")];
  const isReached = (each) => each.checkVisibility() && !each.disabled && each.tabIndex >= 0;
  const wanted = all.filter((each) => isReached(each) && !(each.type === "radio" && !each.checked));
  for (const each of wanted) each.dataset.wanted = "";
  return wanted.length;
})()`;
/** Takes the mark off what has the focus; gives it when nothing shows that it has. */
const REACHED = `(() => {
  const { activeElement: focused } = document;
  delete focused.dataset.wanted;
  return focused === document.body || getComputedStyle(focused).outlineStyle !== "none" ? null : focused.outerHTML;
})()`;
const LEFT = `[...document.querySelectorAll("[data-wanted]")].map(({ outerHTML }) => outerHTML)`;

test("the keyboard reaches all of a page, and what has the focus is seen", async () => {
  const { page, ...dash } = await openForAxe("/dashboard/nowhere", "administrator");
  for (const path of ["webhook", "settings", "account", "audit", "refusals", "links", `streams/${locked}?tab=live`]) {
    await goTo({ page, ...dash }, `/dashboard/${path}`);
    const wanted = (await page.evaluate(MARK)) as number;
    expect(wanted, path).toBeGreaterThan(0);
    // A field of a time takes several.
    for (let presses = 0; presses < 60 + 3 * wanted && (await page.evaluate(`${LEFT}.length`)) !== 0; presses += 1) {
      await page.keyboard.press("Tab");
      const unseen = (await page.evaluate(REACHED)) as string | null;
      if (unseen !== null) found.push(`${path}: no outline of ${unseen}`);
    }
    for (const each of (await page.evaluate(LEFT)) as string[]) found.push(`${path}: not reached: ${each}`);
  }
  expect(found).toEqual([]);
  expect(await dash.faults()).toEqual([]);
  await page.context().close();
}, 180_000);

test("the history of a stream with refusals passes, and so do an empty one, its publish key and its links", async () => {
  await dashboard.headgate.call("PUT", `/stream/${locked}/key`, { publish_key: true });
  const { page, ...dash } = await openForAxe(`/dashboard/streams/${locked}?tab=history`, "administrator");
  await page.getByText("2 times, last").waitFor();
  await judge({ page }, "history");
  await dash.press("Yesterday");
  await page.getByText("Nothing happened at this time").waitFor();
  await judge({ page }, "an empty history");
  await dash.press("Connect");
  await page.getByRole("button", { name: "Renew the key" }).waitFor();
  await judge({ page }, "connect");
  await page.getByRole("tab", { name: "Links" }).click();
  await dash.press("Create the link");
  await page.getByRole("button", { name: "Revoke the broadcast link" }).waitFor();
  await judge({ page }, "links");
  expect(found).toEqual([]);
  expect(await dash.faults()).toEqual([]);
  await page.context().close();
}, 90_000);

test("dialogs, notifications, a delivery, the palette and the phone's menu pass", async () => {
  const { page, ...dash } = await openForAxe("/dashboard/keys", "administrator");
  await dash.press("Create a key");
  await judge({ page }, "a key's dialog");
  await page.locator("dialog").getByRole("button", { name: "Create the key" }).click();
  await page.getByText("It is shown only once.").waitFor();
  await judge({ page }, "a key shown");
  await dash.press("Done");
  await page
    .getByRole("button", { name: /^Revoke/ })
    .first()
    .click();
  await judge({ page }, "a question");
  await dash.press("Revoke the key");
  await dash.news("is revoked");
  await judge({ page }, "news");
  await dash.press("Deliveries");
  await dash.shows("Deliveries");
  await page.locator("tbody a").first().click();
  await dash.shows("Publish request");
  await page.getByText("Webhook id").waitFor();
  await judge({ page }, "delivery");
  await page.keyboard.press("Control+k");
  await page.getByRole("option").first().waitFor();
  await judge({ page }, "palette");
  await page.keyboard.press("Escape");
  await page.setViewportSize(PHONE);
  await dash.press("Open the menu");
  await page.getByRole("link", { name: "Settings" }).waitFor();
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
  expect(violations.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
  await page.keyboard.press("Escape");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Open the menu");
  await dash.press("Open the menu");
  await page.getByRole("link", { name: "Settings" }).click();
  await dash.shows("Settings");
  expect(await page.getByRole("link", { name: "Settings" }).isVisible()).toBe(false);
  expect(found).toEqual([]);
  expect(await dash.faults()).toEqual([]);
  await page.context().close();
}, 90_000);

test("the timeline of a broadcast passes", async () => {
  const { headgate, customer } = dashboard;
  const { id, ingest } = (await headgate.call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const name = ingest.rtmp.streamname;
  await broadcast(`${headgate.rtmp}/${name}`, { seconds: 2 }).exit;
  await until("its end", () => customer.calls("publish_done").some(({ body }) => body.includes(name)));
  const { page, ...dash } = await openForAxe(`/dashboard/streams/${id}?tab=history`, "readonly");
  await page.getByRole("button", { name: "Timeline" }).click();
  await page.getByText("The first video arrived after").waitFor();
  await judge({ page }, "what happened");
  expect(found).toEqual([]);
  expect(await dash.faults()).toEqual([]);
  await page.context().close();
}, 90_000);
