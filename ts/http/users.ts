// /organisation/user: the people of an organisation and their roles (M4). Administrators only.
import type { Kysely } from "kysely";
import { changed } from "../organisation/audit.ts";
import { checkPassword, hashPassword } from "../organisation/passwords.ts";
import {
  addPerson,
  changePerson,
  hasPassword,
  listPeople,
  PEOPLE_LIMIT,
  readEmail,
  removePerson,
} from "../organisation/people.ts";
import type { PersonTable, Schema } from "../store/schema.ts";
import { type Declarations, newRoutes, Role, type RouteDeps, type Routes, Time, z } from "./openapi.ts";
import { cursorOf, pageOf, pageQuery } from "./request/page.ts";
import { requiredText, text } from "./request/schema.ts";

const User = z
  .object({
    id: z.uuid(),
    email: z.string(),
    role: Role,
    password_set: z.boolean().openapi({ description: "False for a person who signs in at the identity provider only" }),
    created_at: Time,
    updated_at: Time,
    last_login_at: Time.nullable(),
  })
  .openapi("User");
const Email = requiredText()
  .transform((given) => readEmail("email", given))
  .openapi({ maxLength: 254, example: "ada@customer.example" });
const Password = requiredText()
  .transform((given) => {
    checkPassword("password", given);
    return given;
  })
  .openapi({ minLength: 12, maxLength: 256, example: "correct horse battery staple" });
/** Written as a union: generators reject a nullable enum. */
const RoleOrNull = z.union([Role, z.null()]);
/** Of one page: as many as an organisation may have. */
const QUANTITY = { standard: PEOPLE_LIMIT, most: PEOPLE_LIMIT } as const;
const Page = cursorOf("user", z.tuple([z.int(), text()]));

export const USER_ROUTES = {
  "GET /organisation/user": {
    tag: "Users",
    summary: "People, oldest first",
    query: z.object(pageQuery(QUANTITY, Page)),
    answer: z.array(User),
  },
  "POST /organisation/user": {
    tag: "Users",
    summary: "Add a person",
    description:
      "An e-mail address can belong to only one person of this Headgate: 400 with code 1003 when it is taken.",
    body: z.object({ email: Email, password: Password, role: Role }),
    bodyRequired: true,
    answer: User,
  },
  "PUT /organisation/user/{id}": {
    tag: "Users",
    summary: "Change role or password",
    description:
      "Members that are not given stay unchanged. A new password ends the person's sessions. The role of the last " +
      "administrator cannot be changed: 400.",
    body: z.object({ role: RoleOrNull.optional(), password: Password.nullable().optional() }),
    bodyRequired: true,
    answer: User,
    errors: [404],
  },
  "DELETE /organisation/user/{id}": {
    tag: "Users",
    summary: "Remove a person",
    description: "Their sessions end. The last administrator cannot be removed: 400.",
    answer: User,
    errors: [400, 404],
  },
} satisfies Declarations;

export function userRoutes(
  deps: RouteDeps & {
    readonly db: Kysely<Schema>;
    readonly clock: { now(): number };
  },
): Routes["hono"] {
  const { db, clock } = deps;
  const routes = newRoutes(deps, USER_ROUTES);

  routes.guarded("GET /organisation/user", async (c, { organisation }, { query: { quantity, cursor } }) => {
    const [createdAt, id] = cursor ?? [];
    const behind = createdAt === undefined || id === undefined ? null : { createdAt, id };
    const found = await listPeople(db, organisation.id, { behind, quantity: quantity + 1 });
    const positionOf = (person: PersonTable): [number, string] => [Number(person.created_at), person.id];
    return c.json(pageOf(c, found, { quantity, cursor: Page, positionOf }).map(userRecord));
  });

  routes.guarded("POST /organisation/user", async (c, caller, { body: { email, password, role } }) => {
    const password_hash = await hashPassword(password);
    const now = clock.now();
    const person = { organisation_id: caller.organisation.id, email, role, password_hash };
    const change = ({ id }: PersonTable) => ({ action: "user.create", subject: id, detail: { email, role } });
    return c.json(userRecord(await changed(db, caller, now, change, (trx) => addPerson(trx, person, now))));
  });

  routes.guarded("PUT /organisation/user/{id}", async (c, caller, { body: { role = null, password = null } }) => {
    const id = c.req.param("id");
    const passwordHash = password === null ? null : await hashPassword(password);
    const now = clock.now();
    const detail = { ...(role === null ? {} : { role }), ...(password === null ? {} : { password: "changed" }) };
    const change = { action: "user.change", subject: id, detail };
    const person = await changed(db, caller, now, change, (trx) =>
      changePerson(trx, caller.organisation.id, id, { role, passwordHash }, now),
    );
    return c.json(userRecord(person));
  });

  routes.guarded("DELETE /organisation/user/{id}", async (c, caller) => {
    const id = c.req.param("id");
    const change = ({ email, role }: PersonTable) => ({
      action: "user.remove",
      subject: id,
      detail: { email, role },
    });
    const remove = (trx: Kysely<Schema>) => removePerson(trx, caller.organisation.id, id);
    return c.json(userRecord(await changed(db, caller, clock.now(), change, remove)));
  });

  return routes.hono;
}

function userRecord(person: PersonTable): z.infer<typeof User> {
  const time = (ms: number) => new Date(Number(ms)).toISOString();
  return {
    id: person.id,
    email: person.email,
    role: person.role,
    password_set: hasPassword(person),
    created_at: time(person.created_at),
    updated_at: time(person.updated_at),
    last_login_at: person.last_login_at === null ? null : time(person.last_login_at),
  };
}
