// A link for a new password: made by an administrator, for one use within a day.
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Gateway, openGateway } from "../support/gateway.ts";
import { PASSWORD, personOf } from "../support/inventory.ts";

const NEW = "another horse battery";
const DAY_MS = 86_400_000;

let gateway: Gateway;
let person: { readonly id: string; readonly email: string };
beforeEach(async () => {
  gateway = await openGateway({ HEADGATE_PUBLIC_URL: "https://headgate.example" });
  person = (await gateway.call("POST", "/organisation/user", { body: personOf("user") })).body as typeof person;
});
afterEach(() => gateway.close());

async function newLink(): Promise<string> {
  const { status, body } = await gateway.call("POST", `/organisation/user/${person.id}/password-link`);
  expect(status).toBe(200);
  const { url, expires_at } = body as { url: string; expires_at: string };
  expect(Date.parse(expires_at)).toBe(gateway.clock.ms + DAY_MS);
  const [place, token = ""] = url.split("#");
  expect(place).toBe("https://headgate.example/dashboard/new-password");
  return token;
}

const use = (token: string, password = NEW) =>
  gateway.call("POST", "/login/password", { key: null, body: { token, password } });
const signIn = (password: string) =>
  gateway.call("POST", "/login", { key: null, body: { email: person.email, password } });

test("sets a new password, ends the sessions of the person, and works once", async () => {
  const cookie = ((await signIn(PASSWORD)).headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const [token, other] = [await newLink(), await newLink()];
  expect((await signIn(PASSWORD)).status).toBe(200);
  expect(await use(token)).toMatchObject({ status: 200, body: { email: person.email } });
  expect((await gateway.call("GET", "/me", { key: null, headers: { cookie } })).status).toBe(403);
  expect([(await signIn(PASSWORD)).status, (await signIn(NEW)).status]).toEqual([403, 200]);
  for (const used of [token, other]) {
    expect(await use(used, PASSWORD)).toMatchObject({ status: 403, body: { error: { code: 4002 } } });
  }
  const { body } = await gateway.call("GET", "/organisation/audit?quantity=2");
  expect(body).toMatchObject([
    { action: "user.password", subject: person.id, who: { kind: "user", id: person.id }, detail: { by: "link" } },
    { action: "user.password_link", subject: person.id, who: { kind: "key" } },
  ]);
  expect(JSON.stringify(body) + gateway.log()).not.toContain(token);
});

test("two uses at the same moment set one password", async () => {
  const token = await newLink();
  const answers = await Promise.all([use(token, NEW), use(token, `${NEW} two`)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 403]);
});

test("is refused after a day, made up, of a removed person, and from another site's page", async () => {
  const token = await newLink();
  expect((await use("made-up")).status).toBe(403);
  const foreign = { "sec-fetch-site": "cross-site" };
  const body = { token, password: NEW };
  expect((await gateway.call("POST", "/login/password", { key: null, body, headers: foreign })).status).toBe(403);
  expect(await use(token, "short")).toMatchObject({
    status: 400,
    body: { error: { userinfo: { parameter: "password" } } },
  });
  gateway.clock.ms += DAY_MS;
  expect((await use(token)).status).toBe(403);
  const last = await newLink();
  await gateway.call("DELETE", `/organisation/user/${person.id}`);
  expect((await use(last)).status).toBe(403);
});

test("is for the people of the administrator's own organisation", async () => {
  const { keys } = await gateway.newOrganisation("Second");
  const place = `/organisation/user/${person.id}/password-link`;
  expect((await gateway.call("POST", place, { key: keys.administrator })).status).toBe(404);
  expect((await gateway.call("POST", place, { key: gateway.keys.user })).status).toBe(403);
});
