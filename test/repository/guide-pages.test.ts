// The pages that are written for readers, in Chromium: the guide with its search, copy buttons and drawings, and the page of
// the API. Each follows the system's colour scheme, has an icon, fits a phone, and breaks no rule of its own policy.
import axe from "axe-core";
import { expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type DashboardPage, useDashboard } from "../support/dashboard.ts";
import { casesOfRun } from "../support/whole-run.ts";

const dashboard = useDashboard();

/** Whether the background is dark: the mean of its three colours. */
const isDark = async ({ page }: DashboardPage, selector: string) =>
  (await page.locator(selector).evaluate((element) => {
    const view = (
      element as unknown as {
        ownerDocument: { defaultView: { getComputedStyle(of: unknown): { backgroundColor: string } } };
      }
    ).ownerDocument.defaultView;
    const [red = 0, green = 0, blue = 0] =
      view.getComputedStyle(element).backgroundColor.match(/\d+/g)?.map(Number) ?? [];
    return red + green + blue < 3 * 100;
  })) as boolean;

test("the guide: a search leads to its section, and a button copies an example", async () => {
  const reader = await dashboard.open("/docs/guide", null, { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = reader;
  await page.getByRole("searchbox", { name: "Search the guide" }).fill("identity provider redirect");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /: Set it up$/ }).click();
  await page.getByRole("heading", { level: 1, name: "Sign-in with your identity provider" }).waitFor();
  expect(page.url()).toMatch(/\/docs\/guide\/sign-in#set-it-up$/);
  const example = page.locator(".block").first();
  await example.getByRole("button", { name: "Copy" }).click();
  await example.getByRole("button", { name: "Copied" }).waitFor();
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
    (await example.locator("code").innerText()).trimEnd(),
  );
  expect(await reader.faults()).toEqual([]);
});

test.each(casesOfRun(["/docs/guide/broadcasting", "/docs/guide/architecture", "/docs/guide?q=webhook"], 3))(
  "%s: accessible in both schemes, and no wider than a phone",
  async (path) => {
    const reader = await dashboard.open(path, null);
    const { page } = reader;
    await page.evaluate(axe.source);
    const violations: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await isDark(reader, "body")).toBe(colorScheme === "dark");
      const found = (await page.evaluate("axe.run()")) as axe.AxeResults;
      for (const { id, impact, nodes } of found.violations) {
        if (impact === "serious" || impact === "critical")
          violations.push(`${colorScheme}: ${id} ${nodes.map(({ html }) => html).join(" ")}`);
      }
    }
    await page.setViewportSize({ width: 360, height: 740 });
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    expect(violations).toEqual([]);
    expect(await reader.faults()).toEqual([]);
  },
);

test("the page of the API follows the colour scheme, also when it changes", async () => {
  const reader = await dashboard.open("/docs", null, { colorScheme: "dark" });
  const { page } = reader;
  await page.locator(".swagger-ui .info").waitFor();
  await until("dark", () => isDark(reader, "html"));
  await page.emulateMedia({ colorScheme: "light" });
  await until("light", async () => (await page.locator("html.dark-mode").count()) === 0);
  const icon = (await page.locator("link[rel=icon]").getAttribute("href")) ?? "";
  // What has no page around it, such as a logo opened alone, gets the same one.
  const alone = await page.request.get(new URL("/favicon.ico", page.url()).href);
  expect([alone.status(), alone.headers()["content-type"]]).toEqual([200, "image/svg+xml"]);
  expect(decodeURIComponent(icon)).toBe(`data:image/svg+xml,${await alone.text()}`);
  expect(await reader.faults()).toEqual([]);
});
