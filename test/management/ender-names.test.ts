// Who ended a publish, by name: in the history of its stream, for the people of the organisation and for keys that
// administer it. Everybody else sees ids.
import { afterAll, beforeAll, expect, test } from "vitest";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import type { Role } from "../../ts/store/tables/roles.ts";
import { type Gateway, type Member, openGateway, START_MS } from "../support/gateway.ts";

const PASSWORD = "correct horse battery staple";
const ADA = "ada@customer.example";

interface Who {
  readonly kind: string;
  readonly id: string | null;
  readonly name: string | null;
}

let gateway: Gateway;
let other: Member;
let stream: string;
/** Ids of who ended the publishes, the newest first. */
let enders: readonly (string | null)[];

beforeAll(async () => {
  gateway = await openGateway();
  other = await gateway.newOrganisation("Second");
  const add = async (key: string, email: string, role: Role) =>
    (await gateway.call("POST", "/organisation/user", { key, body: { email, role, password: PASSWORD } })).body as {
      readonly id: string;
    };
  const { administrator } = gateway.keys;
  const ada = await add(administrator, ADA, "administrator");
  const gone = await add(administrator, "gone@customer.example", "user");
  const foreign = await add(other.keys.administrator, "eve@second.example", "user");
  await add(administrator, "carla@customer.example", "readonly");
  const keyOf = async (label: string | null) =>
    (await gateway.call("POST", "/organisation/key", { body: { role: "user", label } })).body as {
      readonly id: string;
    };
  const [labelled, bare] = [await keyOf("Website"), await keyOf(null)];
  await gateway.call("DELETE", `/organisation/user/${gone.id}`);
  await gateway.call("DELETE", `/organisation/key/${labelled.id}`);
  ({ id: stream } = (await gateway.call("POST", "/stream", { body: { tags: ["studio"] } })).body as { id: string });
  const whos = [`user:${ada.id}`, `user:${gone.id}`, `user:${foreign.id}`, `key:${labelled.id}`, `key:${bare.id}`];
  const all = [...whos, "operator:", null];
  enders = all.map((who) => who?.split(":")[1] || null);
  const rows = all.map((end_who, at) => ({
    ...{ client_id: at + 1, organisation_id: gateway.organisation.id, stream_id: stream, name: "x", app: "live" },
    ...{ address: "", asked_at: START_MS - at, accepted_at: START_MS, ended_at: START_MS, state: "ended" as const },
    ...{ end_reason: "kicked", bytes_in: 0, bytes_out: 0, end_code: "ended_by_person", end_who, end_detail: "Off air" },
  }));
  await gateway.db.insertInto("publish").values(rows).execute();
});
afterAll(() => gateway.close());

async function history(options: Parameters<Gateway["call"]>[2]): Promise<readonly (Who | null)[]> {
  const { status, body } = await gateway.call("GET", `/stream/${stream}/publish`, options);
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as { end: { who: Who | null } }[]).map(({ end }) => end.who);
}
const namesIn = (whos: readonly (Who | null)[]) => whos.map((who) => who?.name ?? null);
const NAMES = [ADA, null, null, "Website", null, null, null];

test("an administrator's key sees the person and the key, also a revoked one, but nobody who is gone or of another organisation", async () => {
  const whos = await history({});
  expect(whos.map((who) => who?.id ?? null)).toEqual(enders);
  expect(namesIn(whos)).toEqual(NAMES);
});

test.each(["user", "readonly"] as const)("a %s key sees ids only", async (role) => {
  const whos = await history({ key: gateway.keys[role] });
  expect(whos.map((who) => who?.id ?? null)).toEqual(enders);
  expect(namesIn(whos)).toEqual(NAMES.map(() => null));
});

test("an administrator's key that is limited to a tag sees ids only", async () => {
  const { id: organisationId } = gateway.organisation;
  const added = await addApiKey(gateway.db, {
    ...{ organisationId, role: "administrator", scopeTag: "studio", now: START_MS },
  });
  expect(namesIn(await history({ key: added.key }))).toEqual(NAMES.map(() => null));
});

test("a person sees them, whatever the role", async () => {
  const body = { email: "carla@customer.example", password: PASSWORD };
  const signedIn = await gateway.call("POST", "/login", { key: null, body, headers: {} });
  const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(namesIn(await history({ key: null, headers: { cookie } }))).toEqual(NAMES);
});
