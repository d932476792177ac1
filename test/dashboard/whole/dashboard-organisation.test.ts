// Keys, people, settings, usage and the audit log in the dashboard, as an administrator: real Chromium, real service.
import { expect, test } from "vitest";
import { SETTING_WORDS, type SettingName } from "../../../ts/dashboard/organisation/setting-words.ts";
import { organisationSettings } from "../../../ts/organisation/settings.ts";
import { until } from "../../support/child.ts";
import { type DashboardPage, PEOPLE, useDashboard } from "../../support/dashboard.ts";
import { broadcast } from "../../support/ffmpeg.ts";
import { held } from "../../support/held.ts";

const dashboard = useDashboard();
const open = (path: string) => dashboard.open(path, "administrator");

/** The API's answer to a request with this key. */
async function statusWith(key: string, path: string): Promise<number> {
  return (await fetch(dashboard.headgate.http + path, { headers: { "x-service-apikey": key } })).status;
}
/** The browser closes a dialog on the second Escape without a click in between, whatever the page does on the first. */
async function pressEscapeOften(page: DashboardPage["page"]): Promise<void> {
  for (let presses = 0; presses < 5; presses += 1) await page.keyboard.press("Escape");
}
const row = ({ page }: Pick<DashboardPage, "page">, text: string) => page.locator("tbody tr", { hasText: text });

test("a key is made with its limits, shown once, replaced and revoked; the last administrator's stays", async () => {
  const { page, ...dash } = await open("/dashboard/keys");
  await row({ page }, "last administrator key").waitFor();
  await dash.press("Create a key");
  await dash.fill("Label", "Website");
  await page.getByLabel("Read-only").check();
  await dash.fill("Only streams with this tag", "studio-1");
  await page.getByLabel("Expires", { exact: true }).selectOption("After 30 days");
  await page.locator("dialog").getByRole("button", { name: "Create the key" }).click();
  await page.getByText("It is shown only once.").waitFor();
  const key = await dash.says("[aria-label='API key'] code");
  expect(await statusWith(key, "/stream")).toBe(200);
  expect(await statusWith(key, "/organisation/usage")).toBe(200);
  expect(await statusWith(key, "/organisation/key")).toBe(403);
  await pressEscapeOften(page);
  await page.locator("dialog[open]").waitFor();
  expect(await dash.says("dialog [aria-label='API key'] code"), "not closed by accident: shown only once").toBe(key);
  await dash.press("Done");
  const website = row({ page }, "Website");
  await website.waitFor();
  expect((await website.innerText()).replaceAll(/\s+/g, " ")).toMatch(/Read-only studio-1 .*in (29|30) days/);
  expect(await page.content()).not.toContain(key);

  await website.getByRole("button", { name: "Rotate Website" }).click();
  await dash.press("Create the new key");
  await page.getByText("It is shown only once.").waitFor();
  const successor = await dash.says("[aria-label='API key'] code");
  expect([await statusWith(key, "/stream"), await statusWith(successor, "/stream")]).toEqual([200, 200]);
  await dash.press("Done");
  await until("two keys", async () => (await row({ page }, "Website").count()) === 2);

  await row({ page }, "Website").first().getByRole("button", { name: "Revoke Website" }).click();
  await dash.press("Revoke the key");
  await dash.news("Website is revoked");
  expect(await statusWith(key, "/stream")).toBe(403);
  await page.locator("p.help", { hasText: "The last administrator key" }).waitFor();
  expect(await dash.faults()).toEqual([]);
});

test("a person is added with a password shown once, changes role, gets a new password and is removed", async () => {
  const { page, ...dash } = await open("/dashboard/people");
  await dash.press("Add a person");
  await dash.fill("E-mail address", PEOPLE.user);
  await page.locator("dialog").getByRole("button", { name: "Add this person" }).click();
  await page.locator("dialog .field-error", { hasText: "Email is already taken." }).waitFor();
  await dash.fill("E-mail address", "dora@customer.example");
  await page.locator("dialog").getByLabel("Administrator").check();
  await page.locator("dialog").getByRole("button", { name: "Add this person" }).click();
  const password = async () => {
    await page.getByText("It is shown only once.").waitFor();
    const shown = await dash.says("[aria-label=Password] code");
    await dash.press("Done");
    return shown;
  };
  const signIn = async (given: string) => {
    const data = { email: "dora@customer.example", password: given };
    return (await dashboard.headgate.call("POST", "/login", data).catch(() => null))?.["role"] ?? "refused";
  };
  const first = await password();
  expect(await signIn(first)).toBe("administrator");
  const role = () => page.getByLabel("Role of dora@customer.example");
  await role().selectOption("Read-only");
  await dash.news("dora@customer.example is read-only now");
  expect(await signIn(first)).toBe("readonly");
  await dash.press("New password for dora@customer.example");
  await dash.press("Create a new password");
  const second = await password();
  expect([await signIn(first), await signIn(second)]).toEqual(["refused", "readonly"]);
  await dash.press("Remove dora@customer.example");
  await dash.press("Remove this person");
  await dash.news("dora@customer.example is removed");
  expect(await signIn(second)).toBe("refused");

  await page.getByLabel("Role of admin").selectOption("User");
  await dash.press("Give it up");
  await dash.news("This is the last administrator.");
  expect(await page.getByLabel("Role of admin").inputValue()).toBe("administrator");
  expect(await dash.faults()).toEqual([]);
});

test("neither Escape nor Cancel loses a new password while Headgate saves it", async () => {
  const { page, ...dash } = await open("/dashboard/people");
  const answer = held();
  await page.route("**/organisation/user", async (route) => {
    if (route.request().method() === "POST") await answer.promise;
    await route.continue();
  });
  await dash.press("Add a person");
  await dash.fill("E-mail address", "emil@customer.example");
  const dialog = page.locator("dialog[open]");
  await dialog.getByRole("button", { name: "Add this person" }).click();
  await dialog.getByRole("button", { name: "Adding …" }).waitFor();
  await pressEscapeOften(page);
  await dialog.getByRole("button", { name: "Cancel" }).click({ force: true });
  answer.release();
  await page.getByText("It is shown only once.").waitFor();
  await pressEscapeOften(page);
  await dialog.waitFor();
  expect(await dash.says("dialog [aria-label=Password] code")).toMatch(/^[\w-]{23}$/);
  await dash.press("Done");
  await row({ page }, "emil@customer.example").waitFor();
  await dash.press("Add a person");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog").waitFor({ state: "detached" });
  expect(await dash.faults()).toEqual([]);
});

test("each setting takes effect immediately; a refused one is reverted and explained", async () => {
  const { page, ...dash } = await open("/dashboard/settings");
  const settings = () => dashboard.headgate.call("GET", "/organisation/settings");
  const saved = async (expected: object) => {
    await until("the setting", async () => {
      const now = await settings();
      return Object.entries(expected).every(([name, value]) => JSON.stringify(now[name]) === JSON.stringify(value));
    });
  };
  await page.getByLabel("Every publish needs a web token").check();
  await saved({ require_token: true });
  await page.getByLabel("When the webhook gives no usable answer").selectOption("The publish goes ahead");
  await saved({ publish_on_hook_unreachable: "allow" });
  await dash.fill("Rejected updates in a row that end a publish", "3");
  await page.keyboard.press("Enter");
  await saved({ update_reject_after: 3 });
  await dash.fill("Rejected updates in a row that end a publish", "0");
  await page.keyboard.press("Enter");
  await page.getByText("A whole number from 1 to 1,000.").waitFor();
  const hold = page.getByLabel(SETTING_WORDS.hold_s.label);
  expect([await hold.inputValue(), await hold.getAttribute("placeholder")]).toEqual(["", "service default"]);
  await hold.fill("61");
  await page.keyboard.press("Enter");
  await page.getByText("A whole number from 0 to 60, or empty.").waitFor();
  await hold.fill("0");
  await page.keyboard.press("Enter");
  await saved({ hold_s: 0 });
  await hold.fill("");
  await page.keyboard.press("Enter");
  await saved({ hold_s: null });
  await page.getByLabel("loss").check();
  await saved({ update_fields: ["loss"] });
  await page.getByLabel("Who may play by RTMP").selectOption("The addresses below");
  await saved({ play: "addresses" });
  await dash.fill("Addresses that may play", "10.0.0.0/8\nnonsense");
  await dash.press("Save the addresses");
  await page.locator(".field-error", { hasText: "must be an IP address" }).waitFor();
  expect(await settings()).toMatchObject({ play_addresses: [] });
  await dash.fill("Addresses that may play", "10.0.0.0/8\n2001:db8::1\n");
  await dash.press("Save the addresses");
  await saved({ play_addresses: ["10.0.0.0/8", "2001:db8::1"] });
  expect(await dash.says("main [aria-label=Organisation]")).toMatch(/Plan Paid/);
  await dashboard.headgate.call("PUT", "/organisation/settings", { require_token: false, play: "open" });
  expect(await dash.faults()).toEqual([]);
});

test("the page has every setting of the organisation", async () => {
  await dashboard.headgate.call("PUT", "/organisation/settings", { play: "addresses" });
  const { page } = await open("/dashboard/settings");
  await page.getByText(SETTING_WORDS.play.label).waitFor();
  const shown = page.locator("main");
  for (const name of Object.keys(organisationSettings.shape) as SettingName[]) {
    expect(await shown.getByText(SETTING_WORDS[name].label, { exact: true }).count(), name).toBe(1);
  }
  await dashboard.headgate.call("PUT", "/organisation/settings", { play: "open" });
});

test("usage is drawn by day, listed by stream, and available as CSV", async () => {
  const name = await dashboard.headgate.newStream();
  await broadcast(`${dashboard.headgate.rtmp}/${name}`, { seconds: 2 }).exit;
  await until("bytes", async () => {
    const { total } = (await dashboard.headgate.call("GET", "/organisation/usage")) as { total: { bytes_in: number } };
    return total.bytes_in > 0;
  });
  const { page, ...dash } = await open("/dashboard/usage");
  await row({ page }, name).waitFor();
  expect(await dash.says(".table tbody tr")).toMatch(/\d+(\.\d+)? kB/);
  await page.locator(".graph canvas").waitFor();
  const isDrawn = `[...document.querySelector(".graph canvas").getContext("2d").getImageData(0, 0, 2000, 400).data].some(Boolean)`;
  await until("the graph", () => page.evaluate(isDrawn));
  const csv = new URL(
    (await page.getByRole("link", { name: "Download as CSV" }).getAttribute("href")) ?? "",
    page.url(),
  );
  expect(csv.pathname).toBe("/organisation/usage");
  expect(csv.searchParams.get("format")).toBe("csv");
  await dash.press("7 days");
  await until("the span", () => new URL(page.url()).searchParams.get("from") !== null);
  await dash.press("By day");
  await until("one day", async () => (await page.locator(".table tbody tr").count()) === 1);
  await page.goto(`${dashboard.headgate.http}/dashboard/usage?from=2020-01-01&to=2020-01-02`);
  await page.getByText("Nothing was broadcast on these days").waitFor();
  await page.goto(`${dashboard.headgate.http}/dashboard/usage?from=2020-01-01&to=nonsense`);
  await page.getByText("This could not be loaded").waitFor();
  expect(await dash.faults()).toEqual([]);
});

test("the audit log loads page after page and can be filtered by action and actor", async () => {
  for (let streams = 0; streams < 55; streams += 1) await dashboard.headgate.newStream();
  const { page, ...dash } = await open("/dashboard/audit");
  await until("a page", async () => (await page.locator("tbody tr").count()) === 50);
  await dash.press("Show more");
  await until("more", async () => (await page.locator("tbody tr").count()) > 50);
  await page.getByLabel("What", { exact: true }).selectOption("People");
  await until("people alone", async () => /person|people/i.test(await dash.says("tbody tr th")));
  expect(await page.getByText("Created a stream").count()).toBe(0);
  await page.getByLabel("Who", { exact: true }).selectOption("admin");
  await until("admin's alone", async () => !(await dash.says("tbody")).includes("Key hg_"));
  expect(new URL(page.url()).searchParams.get("area")).toBe("user");
  await dash.press("Clear the filter");
  await until("all", async () => (await page.locator("tbody tr").count()) === 50);
  expect(await dash.faults()).toEqual([]);
});
