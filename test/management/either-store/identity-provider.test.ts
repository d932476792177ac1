// Sign-in at an organisation's identity provider, with a real one (oidc-provider) on loopback.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { Browser, CLIENT, type IdentityProvider, openProvider } from "../../support/identity-provider.ts";

const HEADGATE = "https://headgate.example";
const ENV = { HEADGATE_DEV: "true", HEADGATE_PUBLIC_URL: HEADGATE };
const PASSWORD = "correct horse battery";
const ROLES = [
  { value: "headgate-admins", role: "administrator" },
  { value: "staff", role: "readonly" },
];
const ACCOUNTS: Record<string, Record<string, unknown>> = {
  ada: { email: "ada@customer.example", email_verified: true, groups: ["staff", "headgate-admins"] },
  bob: { email: "bob@customer.example", email_verified: true, groups: ["staff"] },
  eve: { email: "eve@customer.example", email_verified: true, groups: ["visitors"] },
  mallory: { email: "owner@customer.example", email_verified: false, groups: ["headgate-admins"] },
  owner: { email: "owner@customer.example", email_verified: true, groups: ["staff"] },
  nameless: { groups: ["staff"] },
};

let gateway: Gateway;
let provider: IdentityProvider;
let start: string;
let callback: string;

beforeAll(async () => {
  gateway = await openGateway(ENV);
  start = `${HEADGATE}/login/identity-provider/${gateway.organisation.hash}`;
  callback = `${start}/callback`;
  provider = await openProvider(ACCOUNTS, [callback]);
  const owner = { email: "owner@customer.example", password: PASSWORD, role: "administrator" };
  await gateway.call("POST", "/organisation/user", { body: owner });
  const answer = await gateway.call("PUT", "/organisation/identity-provider", { body: settings() });
  expect(answer.body).toMatchObject({ identity_provider: { client_secret_set: true }, redirect_uri: callback });
});
afterAll(async () => {
  await gateway.close();
  await provider.close();
});

function settings(part: object = {}) {
  const { id: client_id, secret: client_secret } = CLIENT;
  return { issuer: provider.issuer, client_id, client_secret, role_claim: "groups", roles: ROLES, ...part };
}

/** The service behind a proxy that ends TLS: requests reach it by http. */
function newBrowser(address = "203.0.113.7"): Browser {
  const peer = { incoming: { socket: { remoteAddress: address, remotePort: 1, remoteFamily: "IPv4" } } };
  return new Browser(HEADGATE, async (path, headers) =>
    gateway.app.request(
      `http://10.0.0.5:8080${path}`,
      { headers: { ...headers, "sec-fetch-site": "cross-site" } },
      peer,
    ),
  );
}

let addresses = 0;
/** From an address of its own, so that no test exhausts another one's attempts. */
function anotherBrowser(): Browser {
  addresses += 1;
  return newBrowser(`198.51.100.${addresses}`);
}

const isPage = (address: string) => address.startsWith(`${HEADGATE}/dashboard`);
const isCallback = (address: string) => address.startsWith(callback);
const signIn = (name: string, browser = anotherBrowser()) => browser.follow(start, name, isPage);
const refusedFor = (why: string) => `${HEADGATE}/dashboard/sign-in/${gateway.organisation.hash}#refused=${why}`;

async function meOf(browser: Browser) {
  const cookie = [...browser.cookiesOf(HEADGATE)].map(([name, value]) => `${name}=${value}`).join("; ");
  return await gateway.call("GET", "/me", { key: null, headers: { cookie } });
}

async function latestAudit() {
  const { body } = await gateway.call("GET", "/organisation/audit?quantity=1");
  return (body as { action: string; detail: Record<string, unknown> }[])[0];
}

test("a person of the provider signs in, is added with the role of the claim, and signs out", async () => {
  const browser = anotherBrowser();
  const begun = await browser.get(start);
  const cookie = begun.headers.getSetCookie()[0] ?? "";
  expect(cookie).toMatch(/^__Host-headgate-sign-in=[\w-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
  const asked = new URL(begun.headers.get("location") ?? "").searchParams;
  expect(Object.fromEntries(asked)).toMatchObject({
    ...{ response_type: "code", redirect_uri: callback, code_challenge_method: "S256" },
    ...{ state: expect.stringMatching(/.{40}/), nonce: expect.stringMatching(/.{40}/) },
  });
  expect(await signIn("ada", browser)).toBe(`${HEADGATE}/dashboard/`);
  expect([...browser.cookiesOf(HEADGATE).keys()]).toEqual(["__Host-headgate", "__Host-headgate-provider"]);
  const me = await meOf(browser);
  expect(me.body).toMatchObject({ email: "ada@customer.example", role: "administrator", password_set: false });
  expect(await latestAudit()).toMatchObject({
    action: "user.sign_in",
    detail: { email: "ada@customer.example", role: "administrator", subject: "ada", added: true },
  });
  const people = (await gateway.call("GET", "/organisation/user")).body;
  expect(people).toContainEqual(expect.objectContaining({ email: "ada@customer.example", password_set: false }));

  const headers = {
    cookie: [...browser.cookiesOf(HEADGATE)].map(([name, value]) => `${name}=${value}`).join("; "),
    "x-csrf-token": (me.body as { csrf_token: string }).csrf_token,
  };
  const out = await gateway.call("POST", "/logout", { key: null, headers });
  expect([out.status, out.body]).toEqual([
    200,
    { signed_out: true, identity_provider: expect.stringMatching(`^${provider.issuer}/session/end\\?`) },
  ]);
  const end = new URL((out.body as { identity_provider: string }).identity_provider).searchParams;
  expect([...end.keys()].sort()).toEqual(["client_id", "id_token_hint"]);
  expect(out.headers.getSetCookie().map((each) => each.split(";")[0])).toEqual([
    "__Host-headgate=",
    "__Host-headgate-provider=",
  ]);
  expect((await meOf(browser)).status).toBe(403);
  const guess = { email: "ada@customer.example", password: PASSWORD };
  expect((await gateway.call("POST", "/login", { key: null, body: guess })).status).toBe(403);
});

test("the role follows the claim at every sign-in", async () => {
  const browser = anotherBrowser();
  await signIn("bob", browser);
  expect((await meOf(browser)).body).toMatchObject({ role: "readonly" });
  ACCOUNTS["bob"] = { ...ACCOUNTS["bob"], groups: "headgate-admins" };
  await signIn("bob", browser);
  expect((await meOf(browser)).body).toMatchObject({ role: "administrator", email: "bob@customer.example" });
});

test("a person for whom no rule matches is refused, and the audit log says which values they have", async () => {
  const browser = anotherBrowser();
  expect(await signIn("eve", browser)).toBe(refusedFor("no_role"));
  expect((await meOf(browser)).status).toBe(403);
  expect(await latestAudit()).toMatchObject({
    action: "user.sign_in_refused",
    detail: { reason: "no_role", email: "eve@customer.example", claim: "groups", values: ["visitors"] },
  });
});

test("an e-mail address that the provider has not verified gives nobody's account, and no address none", async () => {
  expect(await signIn("mallory")).toBe(refusedFor("email_taken"));
  expect(await signIn("nameless")).toBe(refusedFor("no_email"));
});

test("the last administrator with a password stays one, whatever the claim says", async () => {
  const browser = anotherBrowser();
  expect(await signIn("owner", browser)).toBe(`${HEADGATE}/dashboard/`);
  const { body } = await meOf(browser);
  expect(body).toMatchObject({ email: "owner@customer.example", role: "administrator" });
  expect(await latestAudit()).toMatchObject({ detail: { role_kept: expect.stringContaining("with a password") } });
  const { id } = body as { id: string };
  const change = await gateway.call("PUT", `/organisation/user/${id}`, { body: { role: "user" } });
  expect(change).toMatchObject({ status: 400, body: { error: { userinfo: { parameter: "role" } } } });
  const login = { email: "owner@customer.example", password: PASSWORD };
  expect((await gateway.call("POST", "/login", { key: null, body: login })).status).toBe(200);
});

test("a state that is repeated, made up or of another browser is refused without a question to the provider", async () => {
  const browser = anotherBrowser();
  const back = await browser.follow(start, "ada", isCallback);
  const begun = new Map(browser.cookiesOf(HEADGATE));
  const before = provider.requests.length;
  const other = anotherBrowser();
  await other.get(start);
  expect(await other.follow(back, "ada", isPage)).toBe(refusedFor("expired"));
  expect(await anotherBrowser().follow(back, "ada", isPage)).toBe(refusedFor("expired"));
  const madeUp = new URL(back);
  madeUp.searchParams.set("state", "made-up");
  expect(
    await new Browser(HEADGATE, (path, headers) => browserWith(begun, path, headers)).follow(
      madeUp.href,
      "ada",
      isPage,
    ),
  ).toBe(refusedFor("expired"));
  expect(provider.requests.slice(before)).toEqual([]);

  expect(await browser.follow(back, "ada", isPage)).toBe(`${HEADGATE}/dashboard/`);
  const after = provider.requests.length;
  for (const [name, value] of begun) browser.cookiesOf(HEADGATE).set(name, value);
  expect(await browser.follow(back, "ada", isPage)).toBe(refusedFor("expired"));
  expect(provider.requests.slice(after)).toEqual([]);
});

async function browserWith(
  cookies: ReadonlyMap<string, string>,
  path: string,
  headers: Readonly<Record<string, string>>,
) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  return await gateway.app.request(`http://10.0.0.5:8080${path}`, { headers: { ...headers, cookie } });
}

test("a sign-in that one process has begun is finished by another one with the same key", async () => {
  const browser = anotherBrowser();
  const back = await browser.follow(start, "ada", isCallback);
  gateway = await gateway.restart(ENV);
  expect(await browser.follow(back, "ada", isPage)).toBe(`${HEADGATE}/dashboard/`);
});

test("a sign-in that took longer than ten minutes is refused", async () => {
  const browser = anotherBrowser();
  const back = await browser.follow(start, "ada", isCallback);
  gateway.clock.ms += 600_000;
  expect(await browser.follow(back, "ada", isPage)).toBe(refusedFor("expired"));
});

test("an ID token with the nonce of another sign-in is refused", async () => {
  const browser = anotherBrowser();
  const nonceOf = async () => {
    const location = new URL((await browser.get(start)).headers.get("location") ?? "");
    return { location, nonce: location.searchParams.get("nonce") ?? "" };
  };
  const former = await nonceOf();
  const { location } = await nonceOf();
  location.searchParams.set("nonce", former.nonce);
  expect(await browser.follow(location.href, "ada", isPage)).toBe(refusedFor("provider_failed"));
  expect(await latestAudit()).toMatchObject({ detail: { cause: expect.stringContaining("nonce") } });
});

test("keys that the provider has replaced sign in, and a token of withdrawn keys does not", async () => {
  provider.rotateKeys();
  expect(await signIn("ada")).toBe(`${HEADGATE}/dashboard/`);
  let withdrawn: object = {};
  provider.tamper("/jwks", (keys) => (withdrawn = keys));
  expect(await signIn("ada")).toBe(`${HEADGATE}/dashboard/`);
  provider.tamper("/jwks", () => withdrawn);
  provider.rotateKeys();
  expect(await signIn("ada")).toBe(refusedFor("provider_failed"));
  expect(await latestAudit()).toMatchObject({ detail: { cause: expect.stringMatching(/\bkey/) } });
  provider.tamper("/jwks", null);
});

test("a provider that names itself differently is refused, before and after the person has signed in there", async () => {
  const browser = anotherBrowser();
  const back = await browser.follow(start, "ada", isCallback);
  const forged = new URL(back);
  forged.searchParams.set("iss", "http://another.example");
  expect(await browser.follow(forged.href, "ada", isPage)).toBe(refusedFor("provider_failed"));

  gateway.clock.ms += 300_000; // the metadata are requested again
  provider.tamper("/.well-known/openid-configuration", (it) => ({ ...it, issuer: "http://another.example" }));
  expect(await signIn("ada")).toBe(refusedFor("provider_failed"));
  expect(await latestAudit()).toMatchObject({ detail: { cause: expect.stringMatching(/issuer|another\.example/) } });
  provider.tamper("/.well-known/openid-configuration", null);
  gateway.clock.ms += 10_000;
  expect(await signIn("ada")).toBe(`${HEADGATE}/dashboard/`);
});

test("a person who declines at the provider is led back", async () => {
  const browser = anotherBrowser();
  const location = new URL((await browser.get(start)).headers.get("location") ?? "");
  const state = location.searchParams.get("state") ?? "";
  const back = `${callback}?error=access_denied&state=${state}&iss=${encodeURIComponent(provider.issuer)}`;
  expect(await browser.follow(back, "ada", isPage)).toBe(refusedFor("denied"));
});

test("failed attempts from one address are refused after ten, without a question to the provider", async () => {
  const browser = anotherBrowser();
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const location = new URL((await browser.get(start)).headers.get("location") ?? "");
    await browser.get(`${callback}?error=access_denied&state=${location.searchParams.get("state")}`);
  }
  expect(await signIn("ada", browser)).toBe(refusedFor("too_many_attempts"));
  expect(await signIn("ada")).toBe(`${HEADGATE}/dashboard/`);
});

test("the client's secret is neither shown nor sent to another issuer, and stored encrypted", async () => {
  const place = "/organisation/identity-provider";
  const { client_secret: _, ...kept } = settings();
  expect((await gateway.call("PUT", place, { body: kept })).body).toMatchObject({
    identity_provider: { client_secret_set: true },
  });
  const moved = await gateway.call("PUT", place, { body: { ...kept, issuer: "https://thief.example" } });
  expect(moved).toMatchObject({ status: 400, body: { error: { userinfo: { parameter: "client_secret" } } } });
  const everything = JSON.stringify([
    (await gateway.call("GET", place)).body,
    (await gateway.call("GET", "/organisation/audit")).body,
    await gateway.db.selectFrom("identity_provider").selectAll().execute(),
    gateway.log(),
  ]);
  expect(everything).not.toContain(CLIENT.secret);
});

test("without --dev an issuer must be https and publicly reachable, when saved and at every connection", async () => {
  const strict = await openGateway({ HEADGATE_PUBLIC_URL: HEADGATE });
  const put = async (issuer: string) =>
    (await strict.call("PUT", "/organisation/identity-provider", { body: settings({ issuer }) })).status;
  expect(await put(provider.issuer)).toBe(400);
  expect(await put("https://inside.example")).toBe(400);
  expect(await put("https://unknown.example")).toBe(200);
  await strict.db.updateTable("identity_provider").set({ issuer: "https://inside.example" }).execute();
  const begun = await strict.app.request(`/login/identity-provider/${strict.organisation.hash}`);
  expect(begun.headers.get("location")).toContain("#refused=provider_failed");
  const { body } = await strict.call("GET", "/organisation/audit?quantity=1");
  expect(body).toMatchObject([{ detail: { cause: expect.stringContaining("address refused") } }]);
  await strict.close();
});

test("removing the provider ends the sessions of its people, and nobody can begin", async () => {
  const browser = anotherBrowser();
  await signIn("ada", browser);
  const removed = await gateway.call("DELETE", "/organisation/identity-provider");
  expect(removed.body).toMatchObject({ identity_provider: null });
  expect((await meOf(browser)).status).toBe(403);
  expect(await signIn("ada", browser)).toBe(refusedFor("not_configured"));
});

test("a provider that does not answer keeps nobody out of another organisation", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  await gateway.call("PUT", "/organisation/identity-provider", { body: settings() });
  const other = await gateway.newOrganisation("Other");
  const body = settings({ issuer: `http://127.0.0.1:${port}` });
  const { status } = await gateway.call("PUT", "/organisation/identity-provider", {
    key: other.keys.administrator,
    body,
  });
  expect(status).toBe(200);
  const begin = async (hash: string) =>
    (await newBrowser().get(`${HEADGATE}/login/identity-provider/${hash}`)).headers.get("location") ?? "";
  const waiting = Array.from({ length: 16 }, () => begin(other.organisation.hash));
  expect(await begin(other.organisation.hash)).toContain("refused=too_many_attempts");
  expect(await begin(gateway.organisation.hash)).toContain(provider.issuer);
  silent.closeAllConnections();
  silent.close();
  for (const location of await Promise.all(waiting)) expect(location).toContain("refused=provider_failed");
});

test("a sign-out ends at the service alone where the provider has no address for it, or cannot be reached", async () => {
  const out = async (browser: Browser) => {
    const cookie = [...browser.cookiesOf(HEADGATE)].map(([name, value]) => `${name}=${value}`).join("; ");
    const { status, body } = await gateway.call("POST", "/logout", { key: null, headers: { cookie } });
    expect([status, (await meOf(browser)).status]).toEqual([200, 403]);
    return (body as { identity_provider: string | null }).identity_provider;
  };
  const changed = async (change: (metadata: Record<string, unknown>) => object) => {
    const browser = anotherBrowser();
    await signIn("bob", browser);
    provider.tamper("/openid-configuration", change);
    gateway.clock.ms += 301_000; // metadata are kept for five minutes
    const address = await out(browser);
    provider.tamper("/openid-configuration", null);
    gateway.clock.ms += 301_000;
    return address;
  };
  expect(await changed(({ end_session_endpoint: _, ...metadata }) => metadata)).toBeNull();
  expect(await changed((metadata) => ({ ...metadata, issuer: "http://elsewhere.example" }))).toBeNull();
  const browser = anotherBrowser();
  await signIn("bob", browser);
  browser.cookiesOf(HEADGATE).set("__Host-headgate-provider", "made-up");
  expect(await out(browser)).toBeNull();
});
