// The dashboard's protections: roles, markup in every text written by others, pages of other sites, frames,
// odd addresses, headers, and how much is loaded first. Real Chromium, real service.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { ROUTES } from "../../ts/organisation/roles.ts";
import { until } from "../support/child.ts";
import { PASSWORD, PEOPLE, useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";

/** Script and style without mpegts.js that are loaded before a page can be used, gzip, bytes. */
const FIRST_LOAD_LIMIT = 90_000;
const MARKUP = `"><img src=x onerror=alert(1)><b class="planted">`;

const dashboard = useDashboard();
const { open } = dashboard;

/** Pages of the organisation, each with something that only an administrator sees there. */
const PAGES: readonly (readonly [path: string, title: string, forbidden: readonly string[]])[] = [
  [
    "/dashboard/webhook",
    "Webhook",
    [
      "Change the webhook",
      "Remove the webhook",
      "Set the webhook",
      "Call the webhook",
      "Create a new secret",
      "Create the secret",
    ],
  ],
  ["/dashboard/deliveries", "Deliveries", []],
  ["/dashboard/usage", "Usage", []],
  ["/dashboard/settings", "Settings", []],
  ["/dashboard/account", "Your account", []],
];
const ADMINISTRATORS = ["/dashboard/keys", "/dashboard/people", "/dashboard/audit"];

test.each(["user", "readonly"] as const)(
  "as %s forbidden actions are absent, and their routes answer 403",
  async (role) => {
    await dashboard.headgate.call("POST", "/organisation/webhook/test", {});
    const { page, ...dash } = await open("/dashboard/webhook", role);
    await dash.shows("Webhook");
    const links = await page.locator("nav a").allInnerTexts();
    expect(links.map((text) => text.trim())).toEqual([
      "Overview",
      "Streams",
      "Refusals",
      ...(role === "user" ? ["Links"] : []),
      "Webhook",
      "Deliveries",
      "Usage",
      "Settings",
    ]);
    expect(await page.locator("main").innerText()).not.toContain("webhook-secret");
    for (const [path, title, forbidden] of PAGES) {
      await page.goto(dashboard.headgate.http + path);
      await dash.shows(title);
      await until("the page", async () => (await page.locator(".loading").count()) === 0);
      for (const name of forbidden) expect(await page.getByRole("button", { name, exact: true }).count(), name).toBe(0);
    }
    await page.goto(`${dashboard.headgate.http}/dashboard/settings`);
    await page.getByText("Every publish needs a web token").waitFor();
    expect(await page.locator("main").locator("input, select, textarea").count()).toBe(0);
    await page.goto(`${dashboard.headgate.http}/dashboard/deliveries`);
    await page.locator("tbody a").first().click();
    await dash.shows("Publish request");
    expect(await page.getByRole("button", { name: "Send it again" }).count()).toBe(0);
    for (const path of ADMINISTRATORS) {
      await page.goto(dashboard.headgate.http + path);
      await dash.shows("There is no such page");
    }
    const change = ["change_webhook", "change_settings", "manage_users", "manage_keys", "view_audit"];
    for (const [route, action] of Object.entries(ROUTES).filter(([, action]) => change.includes(action))) {
      const [method = "", path = ""] = route.split(" ");
      expect(await dash.call(method, path.replaceAll(/\{\w+\}/g, "none")), `${action}: ${route}`).toBe(403);
    }
    expect(await dash.faults()).toEqual([]);
  },
);

test("markup in names, tags, labels, reasons and addresses is shown as text everywhere", async () => {
  const { headgate, customer } = dashboard;
  await headgate.call("PUT", "/organisation/webhook", { webhook: `${customer.url}&note=<b/class=planted>` });
  await headgate.call("POST", "/organisation/key", { role: "user", label: MARKUP, scope_tag: MARKUP.slice(0, 100) });
  const { ingest } = (await headgate.call("POST", "/stream", { tags: [MARKUP] })) as {
    ingest: { rtmp: { streamname: string } };
  };
  customer.answer({ status: 403, body: `${MARKUP}\n`, headers: { "content-type": "text/plain" } });
  const name = ingest.rtmp.streamname;
  await broadcast(`${headgate.rtmp}/${name}?${encodeURIComponent(MARKUP)}=1`, { seconds: 3 }).exit;
  customer.answer({ status: 200 });
  const { page, ...dash } = await open("/dashboard/deliveries", "administrator");
  await page.locator("tbody tr", { hasText: MARKUP }).first().waitFor();
  await page.locator("tbody tr", { hasText: MARKUP }).first().getByRole("link").first().click();
  await dash.shows("Publish request");
  expect(await dash.says(".note.attention blockquote")).toBe(MARKUP);
  for (const path of ["webhook", "keys", "audit", "streams", "usage", "people"]) {
    await page.goto(`${headgate.http}/dashboard/${path}`);
    await page.locator("h1").waitFor();
    await until("the page", async () => (await page.locator(".loading").count()) === 0);
    if (["keys", "audit"].includes(path)) expect(await dash.says("main")).toContain("onerror=alert(1)");
    expect(await page.locator(".planted, main img").count(), path).toBe(0);
  }
  await dash.command(MARKUP);
  await page.getByText("Nothing found for").waitFor();
  expect(await page.locator(".planted").count()).toBe(0);
  expect(await dash.faults()).toEqual([]);
  // If a script of ours ever wrote markup, the browser would refuse it.
  const written = page.evaluate("document.body.innerHTML = '<p>markup</p>'");
  await expect(written).rejects.toThrow(/TrustedHTML/);
});

test("a change without the page's token, or from a page of another site, is refused; the cookie is sent only to us", async () => {
  const { http } = dashboard.headgate;
  const signedIn = await fetch(`${http}/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email: PEOPLE.administrator, password: PASSWORD }),
  });
  const [cookie = "", ...flags] = (signedIn.headers.get("set-cookie") ?? "").split("; ");
  expect(cookie).toMatch(/^__Host-headgate=[\w-]{43}$/);
  expect(flags).toEqual(expect.arrayContaining(["Path=/", "HttpOnly", "Secure", "SameSite=Lax"]));
  expect(flags.some((flag) => flag.startsWith("Domain"))).toBe(false);
  const { csrf_token: token } = (await signedIn.json()) as { csrf_token: string };
  const remove = async (headers: Record<string, string>) =>
    (await fetch(`${http}/organisation/webhook`, { method: "DELETE", headers: { cookie, ...headers } })).status;
  expect(await remove({})).toBe(403);
  expect(await remove({ "x-csrf-token": `${token.slice(1)}x` })).toBe(403);
  expect(await remove({ "x-csrf-token": token, "sec-fetch-site": "cross-site" })).toBe(403);
  expect(await remove({ "x-csrf-token": token, origin: "https://evil.example" })).toBe(403);
  expect(await remove({ "x-csrf-token": token, "sec-fetch-site": "same-origin" })).toBe(200);
});

test("no other site can show the dashboard in a frame", async () => {
  const { http } = dashboard.headgate;
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end(`<iframe src="${http}/dashboard/"></iframe>`);
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { page } = await open("/dashboard/", null);
  const refused = page.waitForEvent("requestfailed", (request) => request.url() === `${http}/dashboard/`);
  await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
  expect((await refused).failure()?.errorText).toBe("net::ERR_BLOCKED_BY_RESPONSE");
  site.close();
});

/** Addresses that might lead to another site, and one that cannot be decoded. */
const ODD = [
  "/dashboard//evil.example",
  "/dashboard//evil.example/%2e%2e",
  "/dashboard/?next=https://evil.example/",
  "/dashboard/%5Cevil.example",
  "/dashboard/javascript:alert(1)",
  "/dashboard/%E0%A4%A",
];

test("no address leads to another site, signed in or not", async () => {
  const { http } = dashboard.headgate;
  const { page, ...dash } = await open("/dashboard/", null);
  const requested = new Set<string>();
  page.on("request", (request) => requested.add(new URL(request.url()).origin));
  for (const path of ODD) {
    await page.goto(http + path);
    await dash.shows("Sign in to Headgate");
  }
  await page.goto(http + ODD[0]);
  await dash.fill("E-mail address", PEOPLE.readonly);
  await dash.fill("Password", PASSWORD);
  await dash.press("Sign in");
  await dash.shows("There is no such page");
  for (const path of ODD) {
    await page.goto(http + path);
    await page.locator("nav").waitFor();
    expect(new URL(page.url()).origin).toBe(http);
    await dash.press("Usage");
    await dash.shows("Usage");
    expect(page.url()).toBe(`${http}/dashboard/usage`);
  }
  expect([...requested]).toEqual([http]);
  expect(await dash.faults()).toEqual([]);
});

test("the root redirects to the dashboard, whose document is revalidated each time and whose files are cached", async () => {
  const { http } = dashboard.headgate;
  const root = await fetch(http, { redirect: "manual" });
  expect([root.status, root.headers.get("location")]).toEqual([302, "/dashboard/"]);
  for (const path of ["/dashboard", "/dashboard/", "/dashboard/streams/any/depth"]) {
    const page = await fetch(http + path);
    expect([page.status, page.headers.get("cache-control")]).toEqual([200, "no-cache"]);
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self' 'sha256-");
    for (const word of ["'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "*"]) expect(policy).not.toContain(word);
    for (const word of ["frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'", "trusted-types 'none'"])
      expect(policy).toContain(word);
    const again = await fetch(http + path, { headers: { "if-none-match": page.headers.get("etag") ?? "" } });
    expect(again.status).toBe(304);
    expect(again.headers.get("content-security-policy")).toBe(policy);
    const files = [...(await page.text()).matchAll(/(?:src|href)="(\/dashboard[^"]+)"/g)].map(([, file = ""]) => file);
    expect(files.length).toBe(3);
    for (const file of files) {
      const { status, headers } = await fetch(http + file);
      expect([status, headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
      expect(headers.get("content-encoding")).toBe("gzip");
    }
  }
  for (const name of ["dashboard-000000000000.js", "..%2fpage.html", "page.html"]) {
    expect((await fetch(`${http}/dashboard/file/${name}`)).status, name).toBe(404);
  }
  expect((await fetch(`${http}/me`)).headers.get("cache-control")).toBe("no-store");
});

test("the first page loads less than 90 kB of script, nothing from elsewhere, and no graphs or player", async () => {
  const { page, ...dash } = await open("/dashboard/", "readonly");
  await dash.shows("Overview");
  await page.getByText("streams are live").waitFor();
  const loaded = async () =>
    (await page.evaluate(
      `performance.getEntriesByType("resource").map(({ name, encodedBodySize }) => ({ name, size: encodedBodySize }))`,
    )) as { name: string; size: number }[];
  const files = await loaded();
  const scripts = files.filter(({ name }) => name.endsWith(".js"));
  const bytes = scripts.reduce((sum, { size }) => sum + size, 0);
  console.log(`first load: ${scripts.length} scripts, ${bytes} bytes gzip`);
  expect(scripts.length).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(FIRST_LOAD_LIMIT);
  expect(files.filter(({ name }) => !name.startsWith(dashboard.headgate.http))).toEqual([]);
  expect(files.filter(({ name }) => /uplot|mpegts/i.test(name))).toEqual([]);
});
