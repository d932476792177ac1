// M15, route by route: a change leaves exactly one entry in the audit log, a read leaves none.
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { ROUTES, type RouteName } from "../../../ts/organisation/roles.ts";
import { type Gateway, openGateway } from "../../support/gateway.ts";
import { fill, type Inventory, PASSWORD, personOf, requestOf } from "../../support/inventory.ts";

/** Neither a GET nor a change of the organisation's data: tokens are in the list of tokens, and a test call is in the
 *  delivery log. */
const CHANGES_NOTHING: readonly RouteName[] = [
  "POST /organisation/webhook/test",
  "POST /organisation/webhook/copies/test",
  "POST /stream/{id}/play-token",
  "POST /webcaster",
];
const guarded = (Object.keys(ROUTES) as RouteName[]).filter((route) => ROUTES[route] !== "anyone");
const looks = (route: RouteName) => route.startsWith("GET ") || CHANGES_NOTHING.includes(route);

/** The caller, and the objects that exist. */
interface Stage {
  readonly gateway: Gateway;
  readonly owned: Inventory;
  readonly person: string;
  readonly headers: Readonly<Record<string, string>>;
}

let lookedAt: Stage;
let changed: Gateway | null = null;

beforeAll(async () => {
  lookedAt = await stage();
});
afterEach(async () => {
  await changed?.close();
  changed = null;
});
afterAll(() => lookedAt.gateway.close());

/** An organisation with one of everything, and its administrator logged in. */
async function stage(): Promise<Stage> {
  const gateway = await openGateway();
  const owned = await fill(gateway, gateway);
  // For routes that only people may call, and so that the changed person is not the last administrator.
  const ada = personOf("administrator");
  const person = (await gateway.call("POST", "/organisation/user", { body: ada })).body as { id: string };
  const login = await gateway.call("POST", "/login", { key: null, body: { email: ada.email, password: PASSWORD } });
  const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const headers = { cookie, "x-csrf-token": (login.body as { csrf_token: string }).csrf_token };
  const url = "https://customer.example/";
  await gateway.db.updateTable("organisation").set({ webhook: url }).execute();
  const copies = { organisation_id: gateway.organisation.id, url, events: "all", updated_at: 0 } as const;
  await gateway.db.insertInto("webhook_copy").values(copies).execute();
  return { gateway, owned, person: person.id, headers };
}

/** The same organisation and caller, with further objects: for a route that changes one of them. */
const another = async (): Promise<Stage> => ({ ...lookedAt, owned: await fill(lookedAt.gateway, lookedAt.gateway) });

/** The additional audit entries after the route was called. */
async function entriesOf(route: RouteName, { gateway, owned, headers }: Stage) {
  const entries = () => gateway.db.selectFrom("audit").select(["action", "who_id"]).orderBy("id").execute();
  const before = await entries();
  const { method, path, body } = requestOf(route, owned);
  const answer = await gateway.call(method, path, { key: null, body, headers });
  expect({ status: answer.status, body: answer.body }).toMatchObject({ status: 200 });
  return (await entries()).slice(before.length);
}

test.each(guarded.filter(looks))("%s leaves no entry", async (route) => {
  expect(await entriesOf(route, lookedAt)).toEqual([]);
});

/** Refused here: nothing waits for another attempt (management-upstreams.test.ts). */
const REFUSED: RouteName = "POST /stream/{id}/upstream/{upstream_id}/retry";

test.each(guarded.filter((route) => !looks(route) && route !== REFUSED))("%s leaves one entry", async (route) => {
  const own = route.includes("{") ? await another() : await stage();
  const { gateway, owned, person } = own;
  if (gateway !== lookedAt.gateway) changed = gateway;
  if (route === "PUT /organisation/webhook") {
    await gateway.db.updateTable("organisation").set({ webhook: null }).execute();
  }
  if (route === "PUT /stream/{id}/unlock") await gateway.call("PUT", `/stream/${owned.stream.id}/lock`);
  const added = await entriesOf(route, own);
  expect(added).toHaveLength(1);
  for (const { who_id } of added) expect(who_id).toBe(person);
});
