// Signing in while the password changes, and sessions while the store cannot be written.
import { sql } from "kysely";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WrongCredentials } from "../../ts/errors.ts";
import { createLoginThrottle } from "../../ts/organisation/login-throttle.ts";
import { createLogins } from "../../ts/organisation/logins.ts";
import { hashPassword } from "../../ts/organisation/passwords.ts";
import { addPerson, changePerson } from "../../ts/organisation/people.ts";
import { type Gateway, openGateway } from "../support/gateway.ts";

const [OLD, NEW] = ["correct horse battery", "another horse battery"];
const ADDRESS = "192.0.2.1";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

async function adaWith(password: string) {
  const { db, clock, organisation } = gateway;
  const password_hash = await hashPassword(password);
  const person = {
    organisation_id: organisation.id,
    email: "ada@customer.example",
    role: "user" as const,
    password_hash,
  };
  return await addPerson(db, person, clock.ms);
}

test("a sign-in with the old password that is under way when a new one is set opens no session", async () => {
  const { db, clock, organisation } = gateway;
  const ada = await adaWith(OLD);
  const passwordHash = await hashPassword(NEW);
  const throttle = createLoginThrottle({ now: () => 0 });
  const logins = createLogins({ db, clock: { now: () => clock.ms }, throttle, log: pino({ level: "silent" }) });
  const pending = logins.open(ada.email, OLD, ADDRESS).catch((error: unknown) => error);
  await db.selectFrom("person").select("id").execute(); // the sign-in has read the old hash
  await changePerson(db, organisation.id, ada.id, { role: null, passwordHash }, clock.ms);
  // On a busy machine it is sometimes over before the change, which then ends its session.
  const outcome = await pending;
  if (outcome instanceof Error) expect(outcome).toBeInstanceOf(WrongCredentials);
  expect(await db.selectFrom("person_session").selectAll().execute()).toEqual([]);
  await expect(logins.open(ada.email, NEW, ADDRESS)).resolves.toMatchObject({ person: { id: ada.id } });
});

test("a change that replaces the old password does not undo one that came before it", async () => {
  const { db, clock, organisation } = gateway;
  const ada = await adaWith(OLD);
  const reset = { role: null, passwordHash: await hashPassword(NEW) };
  await changePerson(db, organisation.id, ada.id, reset, clock.ms);
  const late = { role: null, passwordHash: await hashPassword(OLD), insteadOf: ada.password_hash };
  await expect(changePerson(db, organisation.id, ada.id, late, clock.ms)).rejects.toThrow(WrongCredentials);
  const [row] = await db.selectFrom("person").select("password_hash").where("id", "=", ada.id).execute();
  expect(row?.password_hash).toBe(reset.passwordHash);
});

test("a session works while the store cannot be written, and its use is recorded once it can", async () => {
  const { db, clock } = gateway;
  const ada = await adaWith(OLD);
  const login = await gateway.call("POST", "/login", { key: null, body: { email: ada.email, password: OLD } });
  const headers = { cookie: (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
  const me = async () => (await gateway.call("GET", "/me", { key: null, headers })).status;
  const warnings = () => gateway.log().split("last use of a session not recorded").length - 1;
  await sql`
    create trigger full before update on person_session begin select raise(abort, 'the disk is full'); end
  `.execute(db);
  clock.ms += 61_000;
  expect([await me(), await me()]).toEqual([200, 200]);
  expect(warnings()).toBe(1);
  await sql`drop trigger full`.execute(db);
  clock.ms += 61_000;
  expect(await me()).toBe(200);
  const [session] = await db.selectFrom("person_session").select("last_seen_at").execute();
  expect([Number(session?.last_seen_at), warnings()]).toEqual([clock.ms, 1]);
});
