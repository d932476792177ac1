// People of an organisation: e-mail, password, role. They sign in to the dashboard; servers use API keys.
import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import { InvalidValue, NotUnique, UnknownRecord, WrongCredentials } from "../errors.ts";
import type { PersonTable, Schema } from "../store/schema.ts";
import type { Role } from "../store/tables/roles.ts";
import { NO_PASSWORD } from "./passwords.ts";

/** Longest e-mail address, characters (RFC 5321 section 4.5.3.1). */
const EMAIL_LIMIT = 254;
/** Most people of one organisation. */
export const PEOPLE_LIMIT = 1_000;

/** An e-mail address in the form in which it is stored and compared. Throws `InvalidValue`. */
export function readEmail(parameter: string, given: string): string {
  const email = given.trim().toLowerCase();
  if (email.length > EMAIL_LIMIT || !/^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u.test(email) || !email.isWellFormed()) {
    throw new InvalidValue(parameter, "must be an e-mail address");
  }
  return email;
}

/** Adds a person. `email`: from `readEmail`. Throws `NotUnique` when anyone in this deployment has that e-mail. */
export async function addPerson(
  db: Kysely<Schema>,
  person: Pick<PersonTable, "organisation_id" | "email" | "role" | "password_hash">,
  now: number,
): Promise<PersonTable> {
  const { people } = await db
    .selectFrom("person")
    .select((eb) => eb.fn.countAll<number>().as("people"))
    .where("organisation_id", "=", person.organisation_id)
    .executeTakeFirstOrThrow();
  if (Number(people) >= PEOPLE_LIMIT) throw new InvalidValue("email", `exceeds the limit of ${PEOPLE_LIMIT} users`);
  const added = await db
    .insertInto("person")
    .values({ ...person, id: randomUUID(), created_at: now, updated_at: now, last_login_at: null })
    .onConflict((conflict) => conflict.column("email").doNothing())
    .returningAll()
    .executeTakeFirst();
  if (added === undefined) throw new NotUnique("email");
  return added;
}

/** People of an organisation, oldest first; only those after the person `behind`, who may have been removed. */
export async function listPeople(
  db: Kysely<Schema>,
  organisationId: string,
  page: {
    readonly behind?: { readonly createdAt: number; readonly id: string } | null;
    readonly quantity?: number;
  } = {},
): Promise<readonly PersonTable[]> {
  const { behind = null, quantity = PEOPLE_LIMIT } = page;
  let query = db.selectFrom("person").selectAll().where("organisation_id", "=", organisationId);
  if (behind !== null) {
    const { createdAt, id } = behind;
    query = query.where((eb) =>
      eb.or([eb("created_at", ">", createdAt), eb.and([eb("created_at", "=", createdAt), eb("id", ">", id)])]),
    );
  }
  return await query.orderBy("created_at").orderBy("id").limit(quantity).execute();
}

/** Changes role or password (null: unchanged); a new password ends the person's sessions. `insteadOf`: the hash of the
 *  password that it replaces, if that matters. Throws `UnknownRecord`, also for people of other organisations,
 *  `InvalidValue` when the organisation would have no administrator, or `WrongCredentials` when the password is not the
 *  one to replace any more. */
export async function changePerson(
  db: Kysely<Schema>,
  organisationId: string,
  id: string,
  change: { readonly role: Role | null; readonly passwordHash: string | null; readonly insteadOf?: string | null },
  now: number,
): Promise<PersonTable> {
  const person = await findPerson(db, organisationId, id);
  const { insteadOf = person.password_hash } = change;
  if (insteadOf !== person.password_hash) throw new WrongCredentials();
  if (change.role !== null && change.role !== "administrator") await keepAnAdministrator(db, person, "role");
  if (change.passwordHash !== null) await db.deleteFrom("person_session").where("person_id", "=", id).execute();
  return await db
    .updateTable("person")
    .set({
      updated_at: now,
      role: change.role ?? person.role,
      password_hash: change.passwordHash ?? person.password_hash,
    })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Removes a person and ends their sessions. Throws like `changePerson`. */
export async function removePerson(db: Kysely<Schema>, organisationId: string, id: string): Promise<PersonTable> {
  const person = await findPerson(db, organisationId, id);
  await keepAnAdministrator(db, person, "id");
  await db.deleteFrom("person_session").where("person_id", "=", id).execute();
  await db.deleteFrom("person_identity").where("person_id", "=", id).execute();
  await db.deleteFrom("person").where("id", "=", id).execute();
  return person;
}

/** The password hash of a person; null when the person has been removed. */
export async function passwordHashOf(db: Kysely<Schema>, id: string): Promise<string | null> {
  const person = await db.selectFrom("person").select("password_hash").where("id", "=", id).executeTakeFirst();
  return person?.password_hash ?? null;
}

/** A person of the organisation. Throws `UnknownRecord`. */
export async function findPerson(db: Kysely<Schema>, organisationId: string, id: string): Promise<PersonTable> {
  if (id.includes("\0")) throw new UnknownRecord("user");
  const person = await db
    .selectFrom("person")
    .selectAll()
    .where("id", "=", id)
    .where("organisation_id", "=", organisationId)
    .executeTakeFirst();
  if (person === undefined) throw new UnknownRecord("user");
  return person;
}

async function keepAnAdministrator(db: Kysely<Schema>, person: PersonTable, parameter: string): Promise<void> {
  const last = await lastAdministrator(db, person);
  if (last !== null) throw new InvalidValue(parameter, `belongs to ${last}`);
}

/** Why the organisation cannot do without this person: its last administrator, or the last one who needs no identity
 *  provider to sign in. null when it can. */
export async function lastAdministrator(db: Kysely<Schema>, person: PersonTable): Promise<string | null> {
  if (person.role !== "administrator") return null;
  const others = await db
    .selectFrom("person")
    .select("password_hash")
    .where("organisation_id", "=", person.organisation_id)
    .where("role", "=", "administrator")
    .where("id", "!=", person.id)
    .execute();
  if (others.length === 0) return "the last administrator";
  const isReplaceable = !hasPassword(person) || others.some(hasPassword);
  return isReplaceable ? null : "the last administrator with a password";
}

/** Whether the person can sign in with a password. */
export function hasPassword({ password_hash }: Pick<PersonTable, "password_hash">): boolean {
  return isPassword(password_hash);
}

/** Whether a person with this hash has a password; null: there is no such person. */
export function isPassword(passwordHash: string | null): boolean {
  return passwordHash !== null && passwordHash !== NO_PASSWORD;
}
