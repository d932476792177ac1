// How many people an organisation may have, and what remains of a removed one.
import { afterEach, beforeEach, expect, test } from "vitest";
import { PEOPLE_LIMIT } from "../../ts/organisation/people.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

const ROWS_AT_A_TIME = 50;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test("the thousandth user of an organisation is added, and no more", async () => {
  const rows = Array.from({ length: PEOPLE_LIMIT - 1 }, (_, at) => ({
    id: `person-${at}`,
    organisation_id: gateway.organisation.id,
    email: `user-${at}@customer.example`,
    role: "readonly" as const,
    password_hash: "x",
    created_at: at,
    updated_at: at,
    last_login_at: null,
  }));
  for (let at = 0; at < rows.length; at += ROWS_AT_A_TIME) {
    await gateway.db
      .insertInto("person")
      .values(rows.slice(at, at + ROWS_AT_A_TIME))
      .execute();
  }
  const add = async (name: string) => {
    const body = { email: `${name}@customer.example`, password: "correct horse battery", role: "readonly" };
    return await gateway.call("POST", "/organisation/user", { body });
  };
  expect(PEOPLE_LIMIT).toBe(1_000);
  expect((await add("last")).status).toBe(200);
  expect(await add("one-too-many")).toMatchObject({ status: 400 });
});

test("no session of a removed person remains", async () => {
  const ada = { email: "ada@customer.example", password: "correct horse battery", role: "readonly" };
  const { id } = (await gateway.call("POST", "/organisation/user", { body: ada })).body as { id: string };
  const { email, password } = ada;
  expect((await gateway.call("POST", "/login", { key: null, body: { email, password } })).status).toBe(200);
  const sessions = () => gateway.db.selectFrom("person_session").select("person_id").execute();
  expect(await sessions()).toEqual([{ person_id: id }]);
  expect((await gateway.call("DELETE", `/organisation/user/${id}`)).status).toBe(200);
  expect(await sessions()).toEqual([]);
});

test("the time of a session's last use is written at most once a minute", async () => {
  const ada = { email: "ada@customer.example", password: "correct horse battery", role: "readonly" };
  await gateway.call("POST", "/organisation/user", { body: ada });
  const { email, password } = ada;
  const login = await gateway.call("POST", "/login", { key: null, body: { email, password } });
  const headers = { cookie: (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
  const began = gateway.clock.ms;
  const seenAfter = async (ms: number) => {
    gateway.clock.ms = began + ms;
    expect((await gateway.call("GET", "/organisation", { key: null, headers })).status).toBe(200);
    const { last_seen_at } = await gateway.db
      .selectFrom("person_session")
      .select("last_seen_at")
      .executeTakeFirstOrThrow();
    return Number(last_seen_at) - began;
  };
  expect(await seenAfter(59_999)).toBe(0);
  expect(await seenAfter(60_000)).toBe(60_000);
});
