// Which person somebody is whom an identity provider has identified: found by issuer and subject, never by a name that
// they could choose. New people are added, and roles follow the claim.
import type { Kysely } from "kysely";
import { InvalidValue, NotUnique } from "../../errors.ts";
import type { PersonTable, Schema } from "../../store/schema.ts";
import type { Role } from "../../store/tables/roles.ts";
import { NO_PASSWORD } from "../passwords.ts";
import { addPerson, lastAdministrator } from "../people.ts";

/** Identities of one person; a further one replaces the oldest. There are more than one after a change of the provider. */
const IDENTITIES_LIMIT = 10;

/** Somebody whom a provider has identified, and the role that they get. */
export interface Identified {
  readonly organisationId: string;
  readonly issuer: string;
  readonly subject: string;
  /** null when the provider says none. */
  readonly email: { readonly email: string; readonly isVerified: boolean } | null;
  readonly role: Role;
}

/** The person; `kept`: why their role stays, although the claim gives a lesser one. */
export type Known =
  | { readonly person: PersonTable; readonly isNew: boolean; readonly kept: string | null }
  | { readonly refused: "no_email" | "email_taken" | "too_many_people" };

/** Finds or adds the person in the transaction `trx`, and gives them their role. */
export async function personIdentified(trx: Kysely<Schema>, who: Identified, now: number): Promise<Known> {
  const known = await trx
    .selectFrom("person_identity")
    .innerJoin("person", "person.id", "person_identity.person_id")
    .selectAll("person")
    .where("person_identity.organisation_id", "=", who.organisationId)
    .where("person.organisation_id", "=", who.organisationId)
    .where("issuer", "=", who.issuer)
    .where("subject", "=", who.subject)
    .executeTakeFirst();
  if (known !== undefined) return { ...(await withRole(trx, known, who.role, now)), isNew: false };
  if (who.email === null) return { refused: "no_email" };
  const { email, isVerified } = who.email;
  const namesake = await trx.selectFrom("person").selectAll().where("email", "=", email).executeTakeFirst();
  if (namesake === undefined) return await added(trx, who, email, now);
  // Whoever may write any address into their profile would otherwise become that person.
  if (!isVerified || namesake.organisation_id !== who.organisationId) return { refused: "email_taken" };
  await link(trx, who, namesake.id, now);
  return { ...(await withRole(trx, namesake, who.role, now)), isNew: false };
}

async function added(trx: Kysely<Schema>, who: Identified, email: string, now: number): Promise<Known> {
  const { organisationId: organisation_id, role } = who;
  try {
    const person = await addPerson(trx, { organisation_id, email, role, password_hash: NO_PASSWORD }, now);
    await link(trx, who, person.id, now);
    return { person, isNew: true, kept: null };
  } catch (error) {
    if (error instanceof NotUnique) return { refused: "email_taken" };
    if (error instanceof InvalidValue) return { refused: "too_many_people" };
    throw error;
  }
}

async function withRole(trx: Kysely<Schema>, person: PersonTable, role: Role, now: number) {
  if (person.role === role) return { person, kept: null };
  const kept = role === "administrator" ? null : await lastAdministrator(trx, person);
  if (kept !== null) return { person, kept };
  const changed = trx.updateTable("person").set({ role, updated_at: now }).where("id", "=", person.id);
  return { person: await changed.returningAll().executeTakeFirstOrThrow(), kept: null };
}

async function link(trx: Kysely<Schema>, who: Identified, personId: string, now: number): Promise<void> {
  const { organisationId: organisation_id, issuer, subject } = who;
  const row = { organisation_id, issuer, subject, person_id: personId, created_at: now };
  const surplus = trx
    .selectFrom("person_identity")
    .select(["issuer", "subject"])
    .where("person_id", "=", personId)
    .orderBy("created_at", "desc")
    .offset(IDENTITIES_LIMIT - 1)
    .limit(1);
  for (const old of await surplus.execute()) {
    const ofOld = trx.deleteFrom("person_identity").where("organisation_id", "=", organisation_id);
    await ofOld.where("issuer", "=", old.issuer).where("subject", "=", old.subject).execute();
  }
  await trx.insertInto("person_identity").values(row).execute();
}
