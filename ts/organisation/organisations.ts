// Organisations: the first one of a new store, and the webhook setting (M5–M7).
import { randomUUID } from "node:crypto";
import type { Kysely } from "kysely";
import type { OrganisationTable, Schema } from "../store/schema.ts";
import type { Role } from "../store/tables/roles.ts";
import { addApiKey, hashOfKey } from "./api-keys.ts";
import { randomText } from "./key-text.ts";
import { hashPassword } from "./passwords.ts";
import { addPerson } from "./people.ts";

/** Length of the hash that begins every stream name of an organisation (M12). */
const HASH_LENGTH = 5;
const FIRST_NAME = "Headgate";
/** Name with which the first person signs in instead of an e-mail address; 24 of 62 characters are 142 random bits. */
const FIRST_PERSON = "admin";
const FIRST_PASSWORD_LENGTH = 24;

/** The result of the first start. */
export type FirstOrganisation =
  /** A new store, which now has an organisation and an administrator key. `key` is null when the operator chose
   *  it. */
  | { readonly outcome: "created"; readonly key: string | null }
  | { readonly outcome: "present" }
  /** The operator's key does not exist in this store, so it grants nothing. */
  | { readonly outcome: "bootstrap_key_unused" };

/** Ensures that there is an organisation with an administrator key. `apiKey`: bootstrap.api_key, or null. */
export async function ensureFirstOrganisation(
  db: Kysely<Schema>,
  apiKey: string | null,
  now: number,
): Promise<FirstOrganisation> {
  return await db.transaction().execute(async (trx) => {
    const any = await trx.selectFrom("organisation").select("id").limit(1).executeTakeFirst();
    if (any === undefined) {
      const organisation = await addOrganisation(trx, FIRST_NAME, now, { operates: true });
      const { key } = await addApiKey(trx, {
        organisationId: organisation.id,
        role: "administrator",
        now,
        text: apiKey,
      });
      return { outcome: "created", key: apiKey === null ? key : null };
    }
    if (apiKey === null) return { outcome: "present" };
    const held = await trx.selectFrom("api_key").select("id").where("hash", "=", hashOfKey(apiKey)).executeTakeFirst();
    return { outcome: held === undefined ? "bootstrap_key_unused" : "present" };
  });
}

/** Ensures that someone can sign in: if there is no person, the operator's organisation gets the administrator `admin`.
 *  `password`: bootstrap.admin_password, or null for a generated one, which is then returned; null in all other
 *  cases. */
export async function ensureFirstPerson(
  db: Kysely<Schema>,
  password: string | null,
  now: number,
): Promise<string | null> {
  const anybody = (store: Kysely<Schema>) => store.selectFrom("person").select("id").limit(1).executeTakeFirst();
  if ((await anybody(db)) !== undefined) return null;
  const given = password ?? randomText(FIRST_PASSWORD_LENGTH);
  const password_hash = await hashPassword(given);
  const isAdded = await db.transaction().execute(async (trx) => {
    // Another node may have started at the same moment.
    if ((await anybody(trx)) !== undefined) return false;
    const organisation_id = (await operatorOf(trx)).id;
    await addPerson(trx, { organisation_id, email: FIRST_PERSON, role: "administrator", password_hash }, now);
    return true;
  });
  return isAdded && password === null ? given : null;
}

/** The organisation that operates the deployment. */
async function operatorOf(db: Kysely<Schema>): Promise<OrganisationTable> {
  return await db.selectFrom("organisation").selectAll().where("operates", "=", 1).executeTakeFirstOrThrow();
}

/** Makes another organisation the operator in the caller's transaction, and returns the former one. */
export async function setOperator(
  trx: Kysely<Schema>,
  organisationId: string,
  now: number,
): Promise<OrganisationTable> {
  const update = trx.updateTable("organisation");
  // Concurrent changes wait for each other here: the second one then replaces the operator that the first one has set.
  await update.set({ updated_at: now }).where("operates", "=", 1).execute();
  const former = await operatorOf(trx);
  await update.set({ operates: null }).where("operates", "=", 1).execute();
  await update.set({ operates: 1, updated_at: now }).where("id", "=", organisationId).execute();
  return former;
}

/** Whether the caller operates the deployment: an administrator of the operator's organisation, without a scope. */
export function isOperator(caller: {
  readonly organisation: Pick<OrganisationTable, "operates">;
  readonly role: Role;
  readonly scopeTag: string | null;
}): boolean {
  return caller.role === "administrator" && caller.scopeTag === null && caller.organisation.operates === 1;
}

/** Adds an enabled, paid organisation without a webhook. `operates`: only for the first one of a store. */
export async function addOrganisation(
  db: Kysely<Schema>,
  name: string,
  now: number,
  { operates = false }: { readonly operates?: boolean } = {},
): Promise<OrganisationTable> {
  const organisation: OrganisationTable = {
    id: randomUUID(),
    hash: randomText(HASH_LENGTH),
    name,
    plan: "paid",
    trial_ends_at: null,
    enabled: 1,
    max_streams: null,
    max_ingest_kbps: null,
    max_setups_per_second: null,
    operates: operates ? 1 : null,
    webhook: null,
    created_at: now,
    updated_at: now,
  };
  await db.insertInto("organisation").values(organisation).execute();
  return organisation;
}

/** Sets or removes (null) the webhook and returns the updated organisation. */
export async function setWebhook(
  db: Kysely<Schema>,
  organisationId: string,
  webhook: string | null,
  now: number,
): Promise<OrganisationTable> {
  return await db
    .updateTable("organisation")
    .set({ webhook, updated_at: now })
    .where("id", "=", organisationId)
    .returningAll()
    .executeTakeFirstOrThrow();
}
