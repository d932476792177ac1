// M15, route by route: what changes something leaves exactly one entry in the audit log, what only looks leaves none.
import { afterEach, beforeEach, expect, test } from "vitest";
import { ROUTES, type RouteName } from "../ts/organisation/roles.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";
import { fill, PASSWORD, personOf, requestOf } from "./support/inventory.ts";

/** Neither GET nor a change of what the organisation owns: tokens are not kept, and a test call is in the delivery log. */
const CHANGES_NOTHING: readonly RouteName[] = [
  "POST /organisation/webhook/test",
  "POST /stream/{id}/play-token",
  "POST /webcaster",
];
const guarded = (Object.keys(ROUTES) as RouteName[]).filter((route) => ROUTES[route] !== "anyone");
const looks = (route: RouteName) => route.startsWith("GET ") || CHANGES_NOTHING.includes(route);

let gateway: Gateway;

beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

const entries = () => gateway.db.selectFrom("audit").select(["action", "who_id"]).orderBy("id").execute();

test.each(guarded)(
  "%s",
  async (route) => {
    const owned = await fill(gateway, gateway);
    // For routes that only people may call, and so that the one who is changed is not the last administrator.
    const ada = personOf("administrator");
    const person = (await gateway.call("POST", "/organisation/user", { body: ada })).body as { id: string };
    const login = await gateway.call("POST", "/login", { key: null, body: { email: ada.email, password: PASSWORD } });
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const headers = { cookie, "x-csrf-token": (login.body as { csrf_token: string }).csrf_token };
    if (route !== "PUT /organisation/webhook") {
      await gateway.db.updateTable("organisation").set({ webhook: "https://customer.example/" }).execute();
    }
    if (route === "PUT /stream/{id}/unlock") await gateway.call("PUT", `/stream/${owned.stream.id}/lock`);
    const before = await entries();

    const { method, path, body } = requestOf(route, owned);
    const answer = await gateway.call(method, path, { key: null, body, headers });
    expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 200 });
    const added = (await entries()).slice(before.length);
    expect(added).toHaveLength(looks(route) ? 0 : 1);
    for (const { who_id } of added) expect(who_id).toBe(person.id);
  },
  30_000,
);
