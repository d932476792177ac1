// People: signing in and out, the protection of their sessions, and the routes that manage them.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ensureFirstPerson } from "../../../ts/organisation/organisations.ts";
import { type Answer, type Call, type Gateway, openGateway } from "../../support/gateway.ts";

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});

afterEach(() => gateway.close());

const failure = (code: number, message: string, userinfo: object = {}) => ({ error: { code, message, userinfo } });
const NO_KEY = "Access denied: send a valid API key in the header x-service-apikey";
const DENIED = { status: 403, body: failure(2001, NO_KEY, { required_header: "x-service-apikey" }) };
const NO_PAGE = { status: 403, body: failure(2001, "Access denied", { required_header: "x-csrf-token" }) };
const WRONG = { status: 403, body: failure(4002, "Wrong credentials") };
const PASSWORD = "correct horse battery";
const ADA = "ada@customer.example";

const brief = ({ status, body }: Answer) => ({ status, body });

const addUser = async (body: object, options: Call = {}) =>
  brief(await gateway.call("POST", "/organisation/user", { ...options, body }));
const login = (email: unknown, password: unknown, headers = {}) =>
  gateway.call("POST", "/login", { key: null, body: { email, password }, headers });

/** A signed-in person: calls with the cookie, and with the page token unless told otherwise. */
async function signedIn(email: string, password = PASSWORD) {
  const answer = await login(email, password);
  expect(answer.status).toBe(200);
  const cookie = (answer.headers.get("set-cookie") ?? "").split(";")[0] as string;
  const me = answer.body as { readonly id: string; readonly csrf_token: string };
  return {
    me,
    cookie,
    call: async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      brief(
        await gateway.call(method, path, {
          key: null,
          body,
          headers: { cookie, "x-csrf-token": me.csrf_token, ...headers },
        }),
      ),
  };
}

describe("a person", () => {
  test("is added, listed, changed and removed by an administrator", async () => {
    const added = await addUser({ email: ` ${ADA.toUpperCase()}`, password: PASSWORD, role: "administrator" });
    const start = "2026-01-01T00:00:00.000Z";
    const { id } = added.body as { id: string };
    const ada = {
      id,
      email: ADA,
      role: "administrator",
      password_set: true,
      created_at: start,
      updated_at: start,
      last_login_at: null,
    };
    expect(added).toStrictEqual({ status: 200, body: ada });
    expect((await gateway.call("GET", "/organisation/user")).body).toStrictEqual([ada]);

    const last = failure(9002, "Invalid value: id belongs to the last administrator", {
      parameter: "id",
      reason: "belongs to the last administrator",
    });
    expect(await gateway.call("DELETE", `/organisation/user/${id}`)).toMatchObject({ status: 400, body: last });
    await addUser({ email: "bob@customer.example", password: PASSWORD, role: "administrator" });
    const changed = await gateway.call("PUT", `/organisation/user/${id}`, { body: { role: "readonly" } });
    expect(brief(changed)).toStrictEqual({ status: 200, body: { ...ada, role: "readonly" } });
    expect(brief(await gateway.call("DELETE", `/organisation/user/${id}`))).toStrictEqual(brief(changed));
    expect((await gateway.call("GET", "/organisation/user")).body).toHaveLength(1);
    expect(await login(ADA, PASSWORD)).toMatchObject(WRONG);
  });

  const missing = (name: string) => failure(1002, `Parameter required: ${name}`, { required_parameter: name });
  const invalid = (parameter: string, reason: string) =>
    failure(9002, `Invalid value: ${parameter} ${reason}`, { parameter, reason });

  test.each<[body: object, refusal: object]>([
    [{}, missing("email")],
    [{ email: ADA }, missing("password")],
    [{ email: ADA, password: PASSWORD }, missing("role")],
    [{ email: 1 }, failure(1004, "Wrong Data Type: email", { parameter: "email", type: "string" })],
    [{ email: "ada" }, invalid("email", "must be an e-mail address")],
    [{ email: "a\0@b" }, invalid("email", "must not contain NUL")],
    [{ email: ADA, password: "too short" }, invalid("password", "must have at least 12 characters")],
    [{ email: ADA, password: "x".repeat(257) }, invalid("password", "must not be longer than 256 bytes")],
    [{ email: ADA, password: PASSWORD, role: "root" }, invalid("role", "must be one of administrator, user, readonly")],
  ])("%j is refused", async (body, refusal) => {
    expect(await addUser(body)).toStrictEqual({ status: 400, body: refusal });
    expect((await gateway.call("GET", "/organisation/user")).body).toStrictEqual([]);
  });

  test.each<[given: unknown, refusal: object]>([
    ["root", invalid("role", "must be one of administrator, user, readonly")],
    [5, failure(1004, "Wrong Data Type: role", { parameter: "role", type: "string" })],
  ])("cannot get the role %j", async (role, refusal) => {
    const { body } = await addUser({ email: ADA, password: PASSWORD, role: "user" });
    const { id } = body as { id: string };
    const path = `/organisation/user/${id}`;
    expect(await gateway.call("PUT", path, { body: { role } })).toMatchObject({ status: 400, body: refusal });
    expect(await gateway.call("PUT", path, { body: { role: null } })).toMatchObject({ body: { role: "user" } });
    expect(await gateway.call("DELETE", path)).toMatchObject({ status: 200 });
  });

  test("has a unique e-mail address, and is unknown to other organisations", async () => {
    const { body } = await addUser({ email: ADA, password: PASSWORD, role: "user" });
    const { id } = body as { id: string };
    const key = (await gateway.newOrganisation("Second")).keys.administrator;
    const taken = { status: 400, body: failure(1003, "Not unique: email", { parameter: "email" }) };
    expect(await addUser({ email: ADA, password: PASSWORD, role: "user" }, { key })).toStrictEqual(taken);
    const unknown = { status: 404, body: failure(9005, "Unknown user") };
    for (const other of [id, "none", "%00"]) {
      const path = `/organisation/user/${other}`;
      expect(await gateway.call("PUT", path, { key, body: { role: "readonly" } })).toMatchObject(unknown);
      expect(await gateway.call("DELETE", path, { key })).toMatchObject(unknown);
    }
    expect((await gateway.call("GET", "/organisation/user", { key })).body).toStrictEqual([]);
  });

  test("is stored without the password, as an argon2id hash", async () => {
    await addUser({ email: ADA, password: PASSWORD, role: "user" });
    const [row] = await gateway.db.selectFrom("person").selectAll().execute();
    expect(row?.password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(JSON.stringify(await gateway.db.selectFrom("audit").selectAll().execute())).not.toContain(PASSWORD);
    expect(gateway.log()).not.toContain(PASSWORD);
  });
});

describe("the first person", () => {
  test("is admin, with the configured password or a generated one, and only in a store without people", async () => {
    expect(await ensureFirstPerson(gateway.db, PASSWORD, gateway.clock.ms)).toBeNull();
    expect((await login("admin", PASSWORD)).body).toMatchObject({ email: "admin", role: "administrator" });
    expect(await ensureFirstPerson(gateway.db, "something else", gateway.clock.ms)).toBeNull();
    await gateway.db.deleteFrom("person").execute();
    const fresh = await ensureFirstPerson(gateway.db, null, gateway.clock.ms);
    expect(fresh).toMatch(/^[A-Za-z0-9]{24}$/);
    expect((await login("Admin", fresh)).status).toBe(200);
  });
});

describe("a session", () => {
  beforeEach(async () => {
    await addUser({ email: ADA, password: PASSWORD, role: "user" });
  });

  test("is a cookie that scripts and other sites cannot read, and says who it is", async () => {
    const answer = await login(ADA, PASSWORD);
    const cookie = answer.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^__Host-headgate=[\w-]{43}; /);
    expect(cookie.split("; ").slice(1).sort()).toEqual([
      "HttpOnly",
      "Max-Age=604800",
      "Path=/",
      "SameSite=Lax",
      "Secure",
    ]);
    const { id, hash, name } = gateway.organisation;
    const me = answer.body as { id: string; csrf_token: string };
    expect(me).toStrictEqual({
      kind: "user",
      id: me.id,
      email: ADA,
      role: "user",
      scope_tag: null,
      organisation: { id, hash, name },
      operator: false,
      password_set: true,
      csrf_token: me.csrf_token,
    });
    const rows = JSON.stringify(await gateway.db.selectFrom("person_session").selectAll().execute());
    expect(rows).not.toContain(cookie.slice(16, 59));
    const { call } = await signedIn(ADA);
    expect((await call("GET", "/me")).body).toMatchObject({ id: me.id });
  });

  test("may do what its role allows, and changes nothing without the page token or from another site", async () => {
    const { call } = await signedIn(ADA);
    expect((await call("POST", "/stream")).status).toBe(200);
    expect((await call("GET", "/stream", undefined, { "x-csrf-token": "" })).body).toHaveLength(1);
    expect(await call("POST", "/stream", undefined, { "x-csrf-token": "" })).toStrictEqual(NO_PAGE);
    expect(await call("POST", "/stream", undefined, { "x-csrf-token": "wrong" })).toStrictEqual(NO_PAGE);
    expect(await call("POST", "/stream", undefined, { "sec-fetch-site": "cross-site" })).toStrictEqual(NO_PAGE);
    expect(await call("POST", "/stream", undefined, { origin: "https://evil.example" })).toStrictEqual(NO_PAGE);
    expect(await call("POST", "/stream", undefined, { origin: "null" })).toStrictEqual(NO_PAGE);
    const own = { origin: "https://gateway.example", "sec-fetch-site": "same-origin" };
    expect((await call("POST", "/stream", undefined, own)).status).toBe(200);
    const role = failure(2001, "Access denied", { required_role: "administrator" });
    expect(await call("DELETE", "/organisation/webhook")).toStrictEqual({ status: 403, body: role });
  });

  test("ends by sign-out, after eight idle hours, and after seven days", async () => {
    const HOUR = 3_600_000;
    const first = await signedIn(ADA);
    expect(await first.call("POST", "/logout")).toStrictEqual({
      status: 200,
      body: { signed_out: true, identity_provider: null },
    });
    expect(await first.call("GET", "/me")).toStrictEqual(DENIED);
    const idle = await signedIn(ADA);
    gateway.clock.ms += 8 * HOUR - 1;
    expect((await idle.call("GET", "/me")).status).toBe(200);
    gateway.clock.ms += 8 * HOUR;
    expect(await idle.call("GET", "/me")).toStrictEqual(DENIED);
    const busy = await signedIn(ADA);
    for (let hour = 7; hour < 168; hour += 7) {
      gateway.clock.ms += 7 * HOUR;
      expect((await busy.call("GET", "/me")).status).toBe(200);
    }
    gateway.clock.ms += 7 * HOUR;
    expect(await busy.call("GET", "/me")).toStrictEqual(DENIED);
  });

  test("ends with the password and with the person", async () => {
    const { me, call } = await signedIn(ADA);
    const change = { current: PASSWORD, password: "another long password" };
    expect(await call("PUT", "/me/password", { ...change, current: "wrong" })).toStrictEqual(WRONG);
    expect(await call("PUT", "/me/password", change)).toStrictEqual({ status: 200, body: { changed: true } });
    expect(await call("GET", "/me")).toStrictEqual(DENIED);
    const again = await signedIn(ADA, change.password);
    await gateway.call("PUT", `/organisation/user/${me.id}`, { body: { password: PASSWORD } });
    expect(await again.call("GET", "/me")).toStrictEqual(DENIED);
    const third = await signedIn(ADA);
    await gateway.call("DELETE", `/organisation/user/${me.id}`);
    expect(await third.call("GET", "/me")).toStrictEqual(DENIED);
  });

  test("of an organisation that is not enabled is refused", async () => {
    const { call } = await signedIn(ADA);
    await gateway.db.updateTable("organisation").set({ enabled: 0 }).execute();
    const off = { status: 403, body: failure(2001, "Organisation is not enabled", { required_state: "enabled" }) };
    expect(await call("GET", "/me")).toStrictEqual(off);
    expect(await login(ADA, PASSWORD)).toMatchObject(off);
  });
});

describe("signing in", () => {
  beforeEach(async () => {
    await addUser({ email: ADA, password: PASSWORD, role: "user" });
  });

  test("does not reveal whether name or password was wrong", async () => {
    for (const [email, password] of [
      [ADA, "wrong"],
      ["nobody@customer.example", PASSWORD],
      [ADA, "x".repeat(10_000)],
    ]) {
      expect(brief(await login(email, password))).toStrictEqual(WRONG);
    }
    expect(await login(ADA, undefined)).toMatchObject({ status: 400, body: { error: { code: 1002 } } });
    expect(await login({ $ne: 1 }, PASSWORD)).toMatchObject({ status: 400, body: { error: { code: 1004 } } });
    expect(await login(`${ADA}\0`, PASSWORD)).toMatchObject({ status: 400, body: { error: { code: 9002 } } });
  });

  test("from a page of another site is refused", async () => {
    expect(await login(ADA, PASSWORD, { "sec-fetch-site": "cross-site" })).toMatchObject(NO_PAGE);
    expect(await login(ADA, PASSWORD, { origin: "https://evil.example" })).toMatchObject(NO_PAGE);
  });

  test("is refused after ten failures, even with the right password, until the window ends", async () => {
    for (let failures = 0; failures < 10; failures += 1) expect(await login(ADA, "wrong")).toMatchObject(WRONG);
    const refused = await login(ADA, PASSWORD);
    expect(refused).toMatchObject({ status: 429, body: failure(9429, "Too many requests") });
    expect(refused.headers.get("retry-after")).toBe("900");
    gateway.clock.ms += 900_000;
    expect((await login(ADA, PASSWORD)).status).toBe(200);
  });
});
