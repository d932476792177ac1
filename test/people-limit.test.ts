// How many people an organisation may have.
import { afterEach, beforeEach, expect, test } from "vitest";
import { PEOPLE_LIMIT } from "../ts/organisation/people.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

const ROWS_AT_A_TIME = 50;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

test("the thousandth user of an organisation is added, and no further one", async () => {
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
