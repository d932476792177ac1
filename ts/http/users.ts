// /organisation/user: the people of an organisation and their roles (M4). Administrators only.
import type { Kysely } from "kysely";
import { changed } from "../organisation/audit.ts";
import type { Authorise } from "../organisation/callers.ts";
import { checkPassword, hashPassword } from "../organisation/passwords.ts";
import { addPerson, changePerson, listPeople, readEmail, removePerson } from "../organisation/people.ts";
import type { PersonTable, Schema } from "../store/schema.ts";
import { newRoutes, Role, type Routes, Time, z } from "./openapi.ts";
import { optionalText, readJson, requiredText, roleOf } from "./request/request.ts";

const User = z
  .object({
    id: z.uuid(),
    email: z.string(),
    role: Role,
    created_at: Time,
    updated_at: Time,
    last_login_at: Time.nullable(),
  })
  .openapi("User");
const Email = z.string().max(254).openapi({ example: "ada@customer.example" });
const Password = z.string().min(12).max(256);

export function userRoutes(deps: {
  readonly db: Kysely<Schema>;
  readonly clock: { now(): number };
  readonly authorise: Authorise;
}): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps.authorise);

  routes.guarded(
    "GET /organisation/user",
    { tag: "Users", summary: "People, oldest first", answer: z.array(User) },
    async (c, { organisation }) => c.json((await listPeople(db, organisation.id)).map(userRecord)),
  );

  routes.guarded(
    "POST /organisation/user",
    {
      tag: "Users",
      summary: "Add a person",
      description: "An e-mail address belongs to one person of this Headgate: 400 with code 1003 when it is taken.",
      body: z.object({ email: Email, password: Password, role: Role }),
      bodyRequired: true,
      answer: User,
    },
    async (c, caller) => {
      const body = await readJson(c);
      const email = readEmail("email", requiredText(body, "email"));
      const password = requiredText(body, "password");
      checkPassword("password", password);
      const role = roleOf(requiredText(body, "role"));
      const password_hash = await hashPassword(password);
      const now = clock.now();
      const person = { organisation_id: caller.organisation.id, email, role, password_hash };
      const change = ({ id }: PersonTable) => ({ action: "user.create", subject: id, detail: { email, role } });
      return c.json(userRecord(await changed(db, caller, now, change, (trx) => addPerson(trx, person, now))));
    },
  );

  routes.guarded(
    "PUT /organisation/user/{id}",
    {
      tag: "Users",
      summary: "Change role or password",
      description:
        "What is not given stays. A new password ends the person's sessions. One administrator always stays.",
      body: z.object({ role: Role.optional(), password: Password.optional() }),
      bodyRequired: true,
      answer: User,
      errors: [404],
    },
    async (c, caller) => {
      const id = c.req.param("id");
      const body = await readJson(c);
      const [wanted, password] = [optionalText(body, "role"), optionalText(body, "password")];
      const role = wanted === null ? null : roleOf(wanted);
      if (password !== null) checkPassword("password", password);
      const passwordHash = password === null ? null : await hashPassword(password);
      const now = clock.now();
      const detail = { ...(role === null ? {} : { role }), ...(password === null ? {} : { password: "changed" }) };
      const change = { action: "user.change", subject: id, detail };
      const person = await changed(db, caller, now, change, (trx) =>
        changePerson(trx, caller.organisation.id, id, { role, passwordHash }, now),
      );
      return c.json(userRecord(person));
    },
  );

  routes.guarded(
    "DELETE /organisation/user/{id}",
    {
      tag: "Users",
      summary: "Remove a person",
      description: "Their sessions end. One administrator always stays: 400 for the last one.",
      answer: User,
      errors: [400, 404],
    },
    async (c, caller) => {
      const id = c.req.param("id");
      const change = ({ email, role }: PersonTable) => ({
        action: "user.remove",
        subject: id,
        detail: { email, role },
      });
      const remove = (trx: Kysely<Schema>) => removePerson(trx, caller.organisation.id, id);
      return c.json(userRecord(await changed(db, caller, clock.now(), change, remove)));
    },
  );

  return routes.hono;
}

function userRecord(person: PersonTable): z.infer<typeof User> {
  const time = (ms: number) => new Date(Number(ms)).toISOString();
  return {
    id: person.id,
    email: person.email,
    role: person.role,
    created_at: time(person.created_at),
    updated_at: time(person.updated_at),
    last_login_at: person.last_login_at === null ? null : time(person.last_login_at),
  };
}
