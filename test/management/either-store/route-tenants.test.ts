// M10, route by route: what belongs to another organisation, or is outside a key's tag, is unknown, like what
// never existed; and it is not changed.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROUTES, type RouteName } from "../../../ts/organisation/roles.ts";
import type { Role } from "../../../ts/store/tables/roles.ts";
import { type Gateway, type Member, openGateway } from "../../support/gateway.ts";
import { fill, type Inventory, PASSWORD, personOf, requestOf } from "../../support/inventory.ts";

const guarded = (Object.keys(ROUTES) as RouteName[]).filter((route) => ROUTES[route] !== "anyone");
/** Routes that name an object of an organisation by an id, or in their body: captures belong to the
 *  deployment. */
const naming = guarded.filter(
  (route) => (route.includes("{") && ROUTES[route] !== "capture") || route === "POST /webcaster/revoke",
);
/** What a key limited to a tag may do at all (M4). */
const SCOPED = [
  "view",
  "create_stream",
  "change_tags",
  "change_titles",
  "change_upstreams",
  "create_token",
  "control_stream",
];
const isScoped = (route: RouteName) => SCOPED.includes(ROUTES[route]);
const TABLES = ["organisation", "stream", "stream_upstream", "person", "token_revocation", "audit"] as const;

let gateway: Gateway;
let other: Member;
let foreign: Inventory;
let outside: Inventory;
let limited: string;

beforeAll(async () => {
  gateway = await openGateway();
  other = await gateway.newOrganisation("Second");
  foreign = await fill(gateway, other);
  outside = await fill(gateway, gateway, ["other"]);
  const role = { role: "administrator", scope_tag: "studio" };
  limited = ((await gateway.call("POST", "/organisation/key", { body: role })).body as { key: string }).key;
});
afterAll(() => gateway.close());

const everything = async () => [
  await Promise.all(TABLES.map((table) => gateway.db.selectFrom(table).selectAll().execute())),
  await gateway.db.selectFrom("api_key").select(["id", "role", "expires_at", "revoked_at"]).execute(),
  [...gateway.live.calls],
];

function unknown(route: RouteName): object {
  const path = route.split(" ")[1] ?? "";
  if (path.startsWith("/webcaster")) return { status: 404, body: { success: false, message: "Unknown stream" } };
  const message = path.startsWith("/stream")
    ? { code: 3001 }
    : { code: expect.any(Number), message: expect.stringMatching(/^Unknown /) };
  return { status: 404, body: { error: message } };
}

describe("with another organisation's ids", () => {
  test.each(naming)("%s", async (route) => {
    const before = await everything();
    const { method, path, body } = requestOf(route, foreign);
    const answer = await gateway.call(method, path, { body });
    expect({ status: answer.status, body: answer.body }).toMatchObject(unknown(route));
    const never = path.replaceAll(/[0-9a-z-]{36}|hg_\w+|msg_\d+|\b1\d{3}\b/g, "never");
    if (never !== path) expect((await gateway.call(method, never, { body })).body).toEqual(answer.body);
    expect(await everything()).toEqual(before);
  });
});

describe("with a key of another tag", () => {
  test.each(guarded)("%s", async (route) => {
    const before = await everything();
    const { method, path, body } = requestOf(route, outside);
    const answer = await gateway.call(method, path, { key: limited, body });
    if (!isScoped(route) && !["GET /me", "PUT /me/password"].includes(route)) {
      const message = path.startsWith("/webcaster") ? { errorCode: 1001 } : { error: { code: 2001 } };
      expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 403, body: message });
    } else if (route.includes("{") || route === "POST /webcaster") {
      expect({ status: answer.status, body: answer.body }).toMatchObject(unknown(route));
    } else {
      // Lists do not contain it; what is created gets the tag.
      expect(JSON.stringify(answer.body)).not.toContain(outside.stream.id);
    }
    if (route !== "POST /stream") expect(await everything()).toEqual(before);
  });
});

describe.each<Role>(["readonly", "user", "administrator"])("a person who is %s", (role) => {
  let headers: Record<string, string>;

  beforeAll(async () => {
    const person = personOf(role);
    await gateway.call("POST", "/organisation/user", { body: person });
    const login = await gateway.call("POST", "/login", {
      key: null,
      body: { email: person.email, password: PASSWORD },
    });
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    headers = { cookie, "x-csrf-token": (login.body as { csrf_token: string }).csrf_token };
  });

  test.each(guarded)("gets the same answer as a key of that role at %s", async (route) => {
    const [method, path] = route.split(" ") as [string, string];
    const place = path.replaceAll(/\{\w+\}/g, "none");
    if (route === "GET /me") return; // contains the caller
    const byKey = await gateway.call(method, place, { key: gateway.keys[role] });
    const byPerson = await gateway.call(method, place, { key: null, headers });
    const denied = byKey.status === 403 && route !== "PUT /me/password";
    expect(byPerson.status === 403).toBe(denied);
    if (denied) expect(byPerson.body).toEqual(byKey.body);
  });
});
