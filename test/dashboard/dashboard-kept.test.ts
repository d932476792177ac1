// What people have typed or chosen is not lost, in real Chromium against the real service: when their session ends, when
// several changes are under way, when one is refused; and what a proxy answers ends no session.
import axe from "axe-core";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { until } from "../support/child.ts";
import { PASSWORD, PEOPLE, type Role, useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { held } from "../support/held.ts";

const dashboard = useDashboard();
const { open } = dashboard;

const newStream = async () => (await dashboard.headgate.call("POST", "/stream")) as unknown as { readonly id: string };
const titleOf = async (id: string) => (await dashboard.headgate.call("GET", `/stream/${id}`)).title;

/** A title is typed, the session ends elsewhere, and Save leads to the sign-in. */
async function interrupted(id: string) {
  const dash = await open(`/dashboard/streams/${id}`, "user");
  const { page } = dash;
  await dash.press("Add a title");
  await dash.fill("Title", "Typed before the end");
  await page.request.post(`${dashboard.headgate.http}/logout`);
  await dash.press("Save");
  await dash.shows("Sign in to Headgate");
  const signIn = async (as: Role) => {
    await dash.fill("E-mail address", PEOPLE[as]);
    await dash.fill("Password", PASSWORD);
    await dash.press("Sign in");
    await page.getByRole("dialog", { name: "Sign in" }).waitFor({ state: "detached" });
  };
  return { ...dash, signIn };
}

test("a form that is open when the session ends is still there afterwards, and what was pressed is done", async () => {
  const { id } = await newStream();
  const { page, signIn, faults } = await interrupted(id);
  const before = await page.getByRole("dialog").count();
  for (const key of ["Escape", "Escape", "Control+k"]) await page.keyboard.press(key);
  expect([before, await page.getByRole("dialog").count()], "only the sign-in").toEqual([1, 1]);
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
  expect(violations.map(({ id, nodes }) => `${id} ${nodes.map(({ html }) => html)}`)).toEqual([]);
  await signIn("user");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator("main bdi", { hasText: "Typed before the end" }).waitFor();
  expect(await titleOf(id)).toBe("Typed before the end");
  expect(await page.title()).toMatch(/^\w+-\w+ · Headgate$/);
  expect(await faults()).toEqual([]);
});

test("somebody else who signs in then sees nothing of it, and nothing is done in their name", async () => {
  const { id } = await newStream();
  const { page, signIn } = await interrupted(id);
  await signIn("administrator");
  await page.getByRole("button", { name: "Add a title" }).waitFor();
  expect(await page.getByRole("dialog").count()).toBe(0);
  expect(await page.content()).not.toContain("Typed before the end");
  expect(await titleOf(id)).toBeNull();
});

test("what a proxy answers in place of Headgate ends no session", async () => {
  const { page, ...dash } = await open("/dashboard/settings", "administrator");
  await dash.shows("Settings");
  for (const status of [403, 404, 429, 502]) {
    await page.route("**/me", (route) => route.fulfill({ status, contentType: "text/html", body: "<h1>No</h1>" }));
    await page.route("**/organisation/user*", (route) => route.fulfill({ status: 403, body: "<h1>No</h1>" }));
    await page.getByRole("link", { name: "People" }).click();
    await page.getByRole("heading", { name: "This could not be loaded" }).waitFor();
    await page.unrouteAll();
    await dash.press("Try again");
    await page.getByRole("rowheader", { name: PEOPLE.readonly }).waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    await dash.shows("Settings");
  }
});

test("a proxy that refuses the sign-in until a date is told in words", async () => {
  const { page, ...dash } = await open("/dashboard/", null);
  const headers = { "retry-after": "Sat, 31 Jan 2026 14:00:07 GMT" };
  await page.route("**/login", (route) => route.fulfill({ status: 429, headers, body: "" }));
  await dash.fill("E-mail address", PEOPLE.user);
  await dash.fill("Password", PASSWORD);
  await dash.press("Sign in");
  await page.getByText("Too many wrong passwords. Try again in a minute.").waitFor();
});

test("settings that are changed one right after another are all saved", async () => {
  const { page, ...dash } = await open("/dashboard/settings", "administrator");
  await dash.shows("Settings");
  const { promise, release } = held();
  await page.route("**/organisation/settings", (route) => promise.then(() => route.continue()), { times: 1 });
  const names = ["bitrate", "fps", "loss"];
  for (const name of names) await page.getByRole("checkbox", { name }).check();
  release();
  await until("all three", async () => (await page.locator(".toast", { hasText: "Saved" }).count()) === 3);
  const { update_fields } = await dashboard.headgate.call("GET", "/organisation/settings");
  expect(update_fields).toEqual(names);
  expect(await checked(page)).toEqual(names);
});

const checked = async (page: Page) => await page.locator("label.check:has(:checked)").allInnerTexts();

test("a number that could not be saved is still in its field, beside the reason", async () => {
  const { page, ...dash } = await open("/dashboard/settings", "administrator");
  await dash.shows("Settings");
  await page.route("**/organisation/settings", (route) => route.fulfill({ status: 500, json: {} }));
  const field = page.getByLabel("How long a lost broadcast is held, in seconds");
  await field.fill("7");
  await field.press("Enter");
  await page.locator(".field-error", { hasText: "Something failed inside Headgate" }).waitFor();
  expect(await field.inputValue()).toBe("7");
  await page.unrouteAll();
  await field.press("Enter");
  await page.locator(".field-error").waitFor({ state: "detached" });
  expect((await dashboard.headgate.call("GET", "/organisation/settings")).hold_s).toBe(7);
});

test("a logo that is too large can be chosen again under the same name", async () => {
  const { page, ...dash } = await open("/dashboard/settings", "administrator");
  await dash.shows("Settings");
  const input = page.getByLabel("PNG file");
  await input.setInputFiles({ name: "logo.png", mimeType: "image/png", buffer: Buffer.alloc(100_001) });
  await page.getByText("The file is larger than 100 kB.").waitFor();
  // A browser reports no change to the file that is chosen already.
  expect(await input.inputValue()).toBe("");
});

test("a preview that was refused because the session had ended goes on by itself after the sign-in", async () => {
  const { id } = await newStream();
  const { ingest } = (await dashboard.headgate.call("GET", `/stream/${id}`)) as unknown as {
    ingest: { rtmp: { streamname: string } };
  };
  const encoder = broadcast(`${dashboard.headgate.rtmp}/${ingest.rtmp.streamname}`, { seconds: 60 });
  const dash = await open("/dashboard/streams", "readonly");
  const { page } = dash;
  await page.route("**/live/*.flv", (route) => route.fulfill({ status: 403, body: "" }));
  await page.goto(`${dashboard.headgate.http}/dashboard/streams/${id}?tab=live`);
  const preview = page.getByRole("figure", { name: "Live preview" });
  await preview.getByText("Your session has ended").waitFor();
  await page.unrouteAll();
  await preview.getByText("Your session has ended").waitFor({ state: "detached" });
  encoder.kill("SIGTERM");
  await encoder.exit;
});

test("of two keys that are revoked at the same time none comes back into the list", async () => {
  const made = async (label: string) =>
    (await dashboard.headgate.call("POST", "/organisation/key", { label, role: "user" })) as unknown as { id: string };
  const [first] = [await made("first"), await made("second")];
  const { page, ...dash } = await open("/dashboard/keys", "administrator");
  const { promise, release } = held();
  await page.route(`**/organisation/key/${first.id}`, (route) => promise.then(() => route.continue()));
  const row = (label: string) => page.getByRole("row", { name: label });
  for (const label of ["first", "second"]) {
    await row(label).getByRole("button", { name: "Revoke" }).click();
    await dash.press("Revoke the key");
  }
  await row("second").waitFor({ state: "detached" });
  release();
  await dash.news("first is revoked");
  expect([await row("first").count(), await row("second").count()]).toEqual([0, 0]);
});

test("tags that two people change at the same time are all there, but those that one has removed", async () => {
  const { id } = await newStream();
  const tags = async (...given: string[]) => await dashboard.headgate.call("PUT", `/stream/${id}/tag`, { tags: given });
  await tags("old", "shared");
  const { page, ...dash } = await open(`/dashboard/streams/${id}`, "user");
  await dash.press("Change tags");
  await dash.press("Remove the tag old");
  await page.getByRole("textbox", { name: "Tags" }).fill("mine");
  await tags("old", "shared", "theirs");
  await dash.press("Save tags");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect((await dashboard.headgate.call("GET", `/stream/${id}`)).tags).toEqual(["shared", "theirs", "mine"]);
});

test("days in the address of the usage that are none are ignored", async () => {
  const { page, ...dash } = await open("/dashboard/usage?from=2026-01-3&to=yesterday", "readonly");
  await dash.shows("Usage");
  expect(await page.getByLabel("To", { exact: true }).inputValue()).toBe(new Date().toISOString().slice(0, 10));
  expect(await dash.faults()).toEqual([]);
});

test("a dialog that is cancelled gives the focus back to the button that opened it", async () => {
  const { page, ...dash } = await open("/dashboard/streams", "user");
  const button = page.getByRole("button", { name: "New stream" });
  await button.focus();
  for (const close of ["Cancel", "Close"]) {
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await dash.press(close);
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await button.evaluate("document.activeElement.textContent")).toBe("New stream");
  }
});

test("the Enter that completes a word of an input method ends no tag, and runs no command", async () => {
  const { page, ...dash } = await open("/dashboard/streams", "user");
  await dash.press("New stream");
  const enter = { key: "Enter", isComposing: true };
  const tags = page.getByRole("textbox", { name: "Tags" });
  await tags.fill("とうきょう");
  await tags.dispatchEvent("keydown", enter);
  expect(await tags.inputValue()).toBe("とうきょう");
  await page.keyboard.press("Escape");
  await dash.command("usage");
  await page.getByRole("option", { name: "Usage", selected: true }).waitFor();
  await page.getByRole("combobox", { name: "Find" }).dispatchEvent("keydown", enter);
  expect(await page.getByRole("dialog", { name: "Commands" }).count()).toBe(1);
});
