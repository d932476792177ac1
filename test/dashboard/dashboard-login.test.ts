// Signing in to the dashboard and out again, in real Chromium against the real service: by keyboard alone,
// with a wrong password, too often, where it cannot work, and when the session ends elsewhere.
import { expect, test } from "vitest";
import { PASSWORD, PEOPLE, useDashboard } from "../support/dashboard.ts";
import { inWholeRun } from "../support/whole-run.ts";

const dashboard = useDashboard();
const { open } = dashboard;

test("with the keyboard alone one signs in, gets to the requested page, opens another, and signs out", async () => {
  const { page, ...dash } = await open("/dashboard/keys", null);
  await dash.shows("Sign in to Headgate");
  const type = async (text: string) => {
    await page.keyboard.press("Tab");
    await page.keyboard.type(text);
  };
  await type(PEOPLE.administrator);
  await type(PASSWORD);
  await page.keyboard.press("Enter");
  await dash.shows("API keys");
  await dash.command("peop");
  await page.getByRole("option", { name: "People", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await dash.shows("People");
  // The heading gets the focus just after it is shown.
  await expect.poll(() => page.evaluate("document.activeElement.textContent")).toBe("People");
  expect(await page.title()).toBe("People · Headgate");
  await dash.command("sign out");
  await page.getByRole("option", { name: "Sign out", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  await dash.shows("Sign in to Headgate");
  expect(await dash.says("form")).toContain("You are signed out.");
  expect(await dash.faults()).toEqual([]);
});

test("a wrong password is reported, and after ten of them when to try again", async () => {
  const { page, ...dash } = await open("/dashboard/", null);
  const signIn = async () => {
    await dash.fill("E-mail address", "mallory@customer.example");
    await dash.fill("Password", "wrong horse battery staple");
    await dash.press("Sign in");
    await page.waitForSelector("form .note.bad");
  };
  await signIn();
  expect(await dash.says("form [role=alert]")).toMatch(/^E-mail address or password is wrong\./);
  for (let tries = 1; tries < 10; tries += 1) {
    await page.request.post(`${dashboard.headgate.http}/login`, {
      data: { email: "mallory@customer.example", password: "wrong" },
    });
  }
  await signIn();
  await page.getByText(/^Too many wrong passwords\. Try again in \d+ minutes\.$/).waitFor();
});

inWholeRun("over plain HTTP from another machine the login explains why it cannot work and what to do", async () => {
  const { page, ...dash } = await open("/dashboard/", null);
  expect(await dash.says("form")).not.toContain("not secure");
  await page.goto(dashboard.headgate.http.replace("127.0.0.1", "headgate.example"));
  await dash.shows("Sign in to Headgate");
  const said = await dash.says("form");
  expect(said).toContain("This address is not secure, so signing in cannot work here.");
  expect(said).toContain("ssh -L 8080:localhost:");
  expect(said).toContain("http.tls_cert");
  await dash.fill("E-mail address", PEOPLE.readonly);
  await dash.fill("Password", PASSWORD);
  await dash.press("Sign in");
  await page.getByText(/^The password is right, but the browser did not keep the session\./).waitFor();
});

test("a session that ends elsewhere leads to the login, and from there back to the same page", async () => {
  const { page, ...dash } = await open("/dashboard/usage?from=2026-01-01&to=2026-01-31", "readonly");
  await dash.shows("Usage");
  await page.request.post(`${dashboard.headgate.http}/logout`);
  await page.getByRole("link", { name: "Settings" }).click();
  await dash.shows("Sign in to Headgate");
  expect(await dash.says("form")).toContain("Your session has ended.");
  await dash.fill("E-mail address", PEOPLE.readonly);
  await dash.fill("Password", PASSWORD);
  await dash.press("Sign in");
  await dash.shows("Settings");
  await page.goBack();
  await dash.shows("Usage");
  expect(new URL(page.url()).search).toBe("?from=2026-01-01&to=2026-01-31");
});

inWholeRun("a user who changes the password signs in with the new one", async () => {
  const { page, ...dash } = await open("/dashboard/account", "user");
  await dash.shows("Your account");
  await dash.fill("Current password", "not mine at all");
  await dash.fill("New password", "another horse battery staple");
  await dash.press("Change the password");
  await page.getByText("The password is wrong.").waitFor();
  await dash.fill("Current password", PASSWORD);
  await dash.press("Change the password");
  await dash.shows("Sign in to Headgate");
  expect(await dash.says("form")).toContain("Your password has been changed. Sign in with the new one.");
  await dash.fill("E-mail address", PEOPLE.user);
  await dash.fill("Password", "another horse battery staple");
  await dash.press("Sign in");
  await dash.shows("Your account");
  const own = (await dashboard.headgate.call("GET", "/organisation/user")) as unknown as {
    id: string;
    email: string;
  }[];
  const { id } = own.find(({ email }) => email === PEOPLE.user) ?? {};
  await dashboard.headgate.call("PUT", `/organisation/user/${id}`, { password: PASSWORD });
});

test("a sign-out that fails is reported, and one is still signed in until it succeeds", async () => {
  const { page, ...dash } = await open("/dashboard/account", "readonly");
  await dash.shows("Your account");
  await page.route("**/logout", (route) => route.abort());
  await dash.press("Sign out");
  expect(await dash.news("did not answer")).toMatch(/^You are still signed in: Headgate did not answer\./);
  await page.unroute("**/logout");
  await page.route("**/logout", (route) => route.fulfill({ status: 503, json: {} }));
  await dash.command("sign out");
  await page.getByRole("option", { name: "Sign out", selected: true }).waitFor();
  await page.keyboard.press("Enter");
  expect(await dash.news("could not end")).toMatch(/^You are still signed in: Headgate could not end the session\./);
  await dash.shows("Your account");
  expect(await dash.call("GET", "/organisation")).toBe(200);
  await page.unroute("**/logout");
  await page.locator("main").getByRole("button", { name: "Sign out" }).click();
  await dash.shows("Sign in to Headgate");
  expect(await dash.says("form")).toContain("You are signed out.");
  expect(await page.locator(".toast").count(), "the problems are no longer shown").toBe(0);
  expect(await dash.faults()).toEqual([]);
});

test("a sign-out that finds no session leads to the login", async () => {
  const { page, ...dash } = await open("/dashboard/account", "readonly");
  await dash.shows("Your account");
  await page.route("**/logout", (route) => route.fulfill({ status: 401, json: {} }));
  await dash.press("Sign out");
  await dash.shows("Sign in to Headgate");
  expect(await dash.says("form")).toContain("You are signed out.");
});

test("a Headgate that does not answer is reported, and a button tries again", async () => {
  const { page, ...dash } = await open("/dashboard/", "readonly");
  await dash.shows("Overview");
  await page.route("**/me", (route) => route.abort());
  await page.reload();
  await page.getByText("Headgate does not answer").waitFor();
  await page.unroute("**/me");
  await dash.press("Try again");
  await dash.shows("Overview");
});

inWholeRun("a page that cannot be loaded after an update says so and can be reloaded", async () => {
  const { page, ...dash } = await open("/dashboard/streams", "readonly");
  await dash.shows("Streams");
  await page.route("**/dashboard/file/usage-*.js", (route) => route.fulfill({ status: 404 }));
  await dash.press("Usage");
  await page.getByText("This page could not be loaded").waitFor();
  await page.unroute("**/dashboard/file/usage-*.js");
  await dash.press("Reload");
  await dash.shows("Usage");
});

test("the chosen colour scheme is applied before anything is painted, and after a reload", async () => {
  const { page, ...dash } = await open("/dashboard/account", "readonly", { colorScheme: "light" });
  await dash.shows("Your account");
  const background = () => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
  const light = await background();
  await page.getByLabel("Dark", { exact: true }).check();
  expect(await background()).not.toBe(light);
  const dark = await background();
  await page.reload();
  expect(await page.evaluate("document.documentElement.dataset.theme")).toBe("dark");
  expect(await background()).toBe(dark);
});
