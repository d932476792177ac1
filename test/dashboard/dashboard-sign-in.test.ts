// Sign-in without a known password, in real Chromium: a link for a new one, and an identity provider, set up by an administrator, then used by somebody from another
// site, so that the cookies' SameSite counts. Headgate is at localhost, the provider at 127.0.0.1.
import { afterAll, beforeAll, expect, test } from "vitest";
import { PEOPLE, useDashboard } from "../support/dashboard.ts";
import { CLIENT, type IdentityProvider, openProvider } from "../support/identity-provider.ts";

const dashboard = useDashboard();
let provider: IdentityProvider;
let here: string;
let hash: string;

beforeAll(async () => {
  here = dashboard.headgate.http.replace("127.0.0.1", "localhost");
  hash = (await dashboard.headgate.call("GET", "/organisation"))["hash"] as string;
  const accounts = {
    ada: { email: "ada@customer.example", email_verified: true, groups: ["staff"] },
    eve: { email: "eve@customer.example", email_verified: true, groups: [] },
  };
  provider = await openProvider(accounts, [`${here}/login/identity-provider/${hash}/callback`]);
}, 90_000);
afterAll(() => provider?.close());

test("an administrator sets the provider up, and a person signs in there and out again", async () => {
  const settings = await dashboard.open("/dashboard/settings", "administrator");
  await settings.shows("Settings");
  await settings.press("Set up the identity provider");
  await settings.fill("Issuer", provider.issuer);
  await settings.fill("Client id", CLIENT.id);
  await settings.fill("Client secret", CLIENT.secret);
  await settings.fill("Values for the role Read-only", "staff\ninterns");
  await settings.press("Save");
  await settings.page.getByText("groups contains staff or interns").waitFor();
  expect(await settings.faults()).toEqual([]);

  const { page, ...dash } = await dashboard.open("/docs", null);
  const signIn = async (name: string) => {
    await dash.press("Sign in with your identity provider");
    await page.locator("input[name=login]").fill(name);
    await page.locator("input[name=password]").fill("any");
    await page.locator("[type=submit]").click();
    await page.locator("[type=submit]").click(); // what Headgate may know
  };
  await page.goto(`${here}/dashboard/sign-in/${hash}`);
  await signIn("ada");
  await dash.shows("Overview");
  expect(new URL(page.url()).host).toBe(new URL(here).host);
  expect(await page.evaluate("fetch('/me').then((me) => me.json())")).toMatchObject({
    ...{ email: "ada@customer.example", role: "readonly" },
  });
  await page.goto(`${here}/dashboard/account`);
  await page.getByText("You have none: you sign in at your organisation’s identity provider.").waitFor();
  expect(await page.getByLabel("Current password").count()).toBe(0);
  await dash.command("sign out");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Yes, sign me out" }).click();
  await page.getByText("Sign-out Success").waitFor();
  expect(new URL(page.url()).origin).toBe(provider.issuer);
  await page.goto(`${here}/dashboard/`);
  await dash.shows("Sign in to Headgate");
  await dash.press("Sign in with your identity provider");
  await page.locator("input[name=login]").waitFor(); // the provider asks again

  await page.context().clearCookies();
  await page.goto(`${here}/dashboard/streams`); // the browser remembers the organisation
  await signIn("eve");
  await page.getByText("You are signed in at your identity provider, but have no role here.").waitFor();
  // The page takes the reason out of its address once it is shown.
  const shown = () => new URL(page.url()).pathname + new URL(page.url()).hash;
  await expect.poll(shown).toBe(`/dashboard/sign-in/${hash}`);
  expect(await dash.faults()).toEqual([]);
});

test("a link for a new password leads to a page that sets it, and then to the sign-in", async () => {
  const people = await dashboard.open("/dashboard/people", "administrator");
  await people.page
    .getByRole("row", { name: PEOPLE.user })
    .getByRole("button", { name: /^New password/ })
    .click();
  await people.press("Make a link instead");
  const link = (await people.says("dialog .copy code")).trim();
  expect(await people.faults()).toEqual([]);

  const { page, ...dash } = await dashboard.open(new URL(link).pathname + new URL(link).hash, null);
  await dash.shows("Choose a password");
  await dash.fill("New password", "a password of my own");
  await dash.press("Save the password");
  await dash.shows("Sign in to Headgate");
  expect(page.url()).toBe(`${dashboard.headgate.http}/dashboard/`);
  await dash.fill("E-mail address", PEOPLE.user);
  await dash.fill("Password", "a password of my own");
  await dash.press("Sign in");
  await dash.shows("Overview");
  expect(await dash.faults()).toEqual([]);

  const again = await dashboard.open(new URL(link).pathname + new URL(link).hash, null);
  await again.fill("New password", "a password of my own");
  await again.press("Save the password");
  await again.page.getByText("This link has been used or has expired.").waitFor();
});
