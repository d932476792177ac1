// `headgate init`, `headgate organisation …` and `headgate user …`: who may work with this deployment.
import { ConfigInvalid, NotUnique } from "../errors.ts";
import { changed, recordChange } from "../organisation/audit.ts";
import { randomText } from "../organisation/key-text.ts";
import {
  addOrganisation,
  ensureFirstOrganisation,
  ensureFirstPerson,
  setOperator,
} from "../organisation/organisations.ts";
import { hashPassword } from "../organisation/passwords.ts";
import { addPerson, changePerson, listPeople, readEmail, removePerson } from "../organisation/people.ts";
import type { OrganisationTable, PersonTable } from "../store/schema.ts";
import { openSecretBoxOf } from "../store/secret-box.ts";
import type { LIMIT_COLUMNS } from "../store/tables/organisation-limits.ts";
import { rotateTokenKeys } from "../token/rotation.ts";
import { type AtStore, atStore, chosenOrganisation, operator, roleOf } from "./at-store.ts";
import type { GivenFlags } from "./flags.ts";
import { print, table, timeText } from "./output.ts";
import { unknownVerb, wanted } from "./words.ts";

/** 24 of 62 characters are 142 random bits. */
const PASSWORD_LENGTH = 24;
/** Most characters of an organisation's name, which broadcasters see. */
const NAME_LIMIT = 100;

/** Creates the store, the first organisation, its administrator key and the person `admin`, and shows the credentials,
 *  which cannot be read again. No effect on a store that already has them. */
export async function runInit(_: readonly string[], flags: GivenFlags): Promise<void> {
  const init = async ({ db, config, now }: AtStore) => {
    const { alg } = config.token;
    // Comes first, because it rejects a key file that does not belong to this store.
    await rotateTokenKeys(db, await openSecretBoxOf(db, config.dataDir), {
      alg,
      now,
      rotateDays: 0,
      algorithm: "active",
    });
    const first = await ensureFirstOrganisation(db, config.bootstrap.apiKey, now);
    const password = await ensureFirstPerson(db, config.bootstrap.adminPassword, now);
    const key = first.outcome === "created" ? first.key : null;
    const made = first.outcome === "created";
    print(flags, { created: made, api_key: key, admin_password: password }, [
      made
        ? `A new store is in ${config.databaseUrl === null ? config.dataDir : "the database"}.`
        : "A store already exists; nothing was changed.",
      ...(key === null ? [] : [`Administrator API key, shown only once: ${key}`]),
      ...(password === null ? [] : [`Password of the user admin, shown only once: ${password}`]),
    ]);
  };
  await atStore(flags, init, { makes: true });
}

export async function runOrganisation(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, name] = words;
  await atStore(flags, async (at) => {
    switch (verb) {
      case "ls": {
        const all = await at.db.selectFrom("organisation").selectAll().orderBy("created_at").execute();
        const rows = all.map(({ id, hash, name, plan, enabled, operates }) => [
          id,
          hash,
          plan,
          enabled ? "enabled" : "disabled",
          operates === 1 ? "operator" : null,
          name,
        ]);
        return print(flags, all, table([["id", "hash", "plan", "state", "operates", "name"], ...rows]));
      }
      case "create": {
        const called = wanted(name?.trim(), "the organisation's name");
        if ([...called].length > NAME_LIMIT || /\p{Cc}/u.test(called))
          throw new ConfigInvalid(`the name may have ${NAME_LIMIT} characters, and no control characters`);
        const made = await at.db.transaction().execute(async (trx) => {
          const same = await trx.selectFrom("organisation").select("id").where("name", "=", called).executeTakeFirst();
          if (same !== undefined) throw new NotUnique("name");
          const organisation = await addOrganisation(trx, called, at.now);
          const change = { action: "organisation.create", subject: organisation.id };
          await recordChange(trx, operator(organisation), at.now, change);
          return organisation;
        });
        return print(flags, made, [
          `${made.id}  ${made.hash}  ${made.name}`,
          `Create a key for it: headgate keys create --organisation ${made.hash} --role administrator`,
        ]);
      }
      case "enable":
      case "disable": {
        const found = await chosenOrganisation(at, {
          organisation: wanted(name ?? (flags.organisation as string | undefined), "the organisation's name"),
        });
        const changed = await setEnabled(at, found, verb === "enable");
        return print(flags, changed, [`${changed.name} is ${verb}d.`]);
      }
      case "operator": {
        const found = await chosenOrganisation(at, { organisation: wanted(name, "the organisation's name") });
        await makeOperator(at, found);
        return print(flags, { operator: found.id }, [`${found.name} operates this deployment.`]);
      }
      case "limit": {
        const found = await chosenOrganisation(at, { organisation: wanted(name, "the organisation's name") });
        const limits = readLimits(flags);
        const limited = await limit(at, found, limits);
        return print(flags, limited, [
          `${limited.name}: ${LIMITS.map(({ words, column }) => `${words} ${shownLimit(limited[column])}`).join(", ")}.`,
        ]);
      }
      default:
        throw unknownVerb("organisation", verb, [
          "ls",
          "create NAME",
          "enable NAME",
          "disable NAME",
          "limit NAME",
          "operator NAME",
        ]);
    }
  });
}

/** Flags for an organisation's own limits. */
const LIMITS = [
  { flag: "streams", column: "max_streams", words: "live streams" },
  { flag: "ingestKbps", column: "max_ingest_kbps", words: "kbit/s in total" },
  { flag: "setupsPerSecond", column: "max_setups_per_second", words: "publish requests per second" },
] as const satisfies readonly { flag: string; column: (typeof LIMIT_COLUMNS)[number]; words: string }[];

type OwnLimits = Pick<OrganisationTable, (typeof LIMIT_COLUMNS)[number]>;

const shownLimit = (limit: number | null) => (limit === null ? "service default" : limit === 0 ? "no limit" : limit);

/** The limits given: a number, 0 for no limit, or `default` for the service's limit. */
function readLimits(flags: GivenFlags): Partial<OwnLimits> {
  const limits: Partial<OwnLimits> = {};
  for (const { flag, column } of LIMITS) {
    const given = flags[flag];
    if (given === undefined) continue;
    if (given !== "default" && !/^\d{1,9}$/.test(String(given)))
      throw new ConfigInvalid(
        `--${flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} must be a number or "default"`,
      );
    limits[column] = given === "default" ? null : Number(given);
  }
  if (Object.keys(limits).length === 0)
    throw new ConfigInvalid("select a limit: --streams, --ingest-kbps, --setups-per-second");
  return limits;
}

async function limit(
  { db, now }: AtStore,
  organisation: OrganisationTable,
  limits: Partial<OwnLimits>,
): Promise<OrganisationTable> {
  return await db.transaction().execute(async (trx) => {
    const change = { action: "organisation.limit", subject: organisation.id, detail: limits };
    await recordChange(trx, operator(organisation), now, change);
    return await trx
      .updateTable("organisation")
      .set({ ...limits, updated_at: now })
      .where("id", "=", organisation.id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
}

/** Recorded for the organisation that becomes the operator and for the one that no longer is. */
async function makeOperator({ db, now }: AtStore, organisation: OrganisationTable): Promise<void> {
  if (organisation.operates === 1) return;
  await db.transaction().execute(async (trx) => {
    const former = await setOperator(trx, organisation.id, now);
    const change = { action: "organisation.operator", subject: organisation.id, detail: { former: former.id } };
    for (const of of [organisation, former]) await recordChange(trx, operator(of), now, change);
  });
}

async function setEnabled(
  { db, now }: AtStore,
  organisation: OrganisationTable,
  enabled: boolean,
): Promise<OrganisationTable> {
  return await db.transaction().execute(async (trx) => {
    const action = enabled ? "organisation.enable" : "organisation.disable";
    await recordChange(trx, operator(organisation), now, { action, subject: organisation.id });
    return await trx
      .updateTable("organisation")
      .set({ enabled: enabled ? 1 : 0, updated_at: now })
      .where("id", "=", organisation.id)
      .returningAll()
      .executeTakeFirstOrThrow();
  });
}

export async function runUser(words: readonly string[], flags: GivenFlags): Promise<void> {
  const [verb, email] = words;
  await atStore(flags, async (at) => {
    const { db, now } = at;
    const organisation = await chosenOrganisation(at, flags);
    const noted = (action: string, work: (trx: AtStore["db"]) => Promise<PersonTable>) =>
      changed(db, operator(organisation), now, ({ id }) => ({ action, subject: id }), work);
    const found = async () => {
      const people = await listPeople(db, organisation.id);
      const person = people.find((each) => each.email === wanted(email, "the e-mail address").toLowerCase());
      return wanted(person?.id, `a user ${email} of ${organisation.name}`);
    };
    switch (verb) {
      case "ls": {
        const people = await listPeople(db, organisation.id);
        const shown = people.map(({ password_hash: _, ...person }) => person);
        return print(
          flags,
          shown,
          table([
            ["e-mail", "role", "last sign-in"],
            ...shown.map(({ email, role, last_login_at }) => [email, role, timeText(last_login_at)]),
          ]),
        );
      }
      case "create": {
        const password = randomText(PASSWORD_LENGTH);
        const added = {
          organisation_id: organisation.id,
          email: readEmail("email", wanted(email, "the e-mail address")),
          role: roleOf(flags),
          password_hash: await hashPassword(password),
        };
        const person = await noted("user.create", (trx) => addPerson(trx, added, now));
        const { id, role } = person;
        return print(flags, { id, email: person.email, role, password }, [
          `Password of ${person.email}, shown only once: ${password}`,
        ]);
      }
      case "password": {
        const password = randomText(PASSWORD_LENGTH);
        const change = { role: null, passwordHash: await hashPassword(password) };
        const id = await found();
        const person = await noted("user.password", (trx) => changePerson(trx, organisation.id, id, change, now));
        return print(flags, { email: person.email, password }, [
          `New password of ${person.email}, shown only once: ${password}`,
        ]);
      }
      case "role": {
        const change = { role: roleOf(flags), passwordHash: null };
        const id = await found();
        const person = await noted("user.role", (trx) => changePerson(trx, organisation.id, id, change, now));
        return print(flags, { email: person.email, role: person.role }, [`${person.email} is ${person.role}.`]);
      }
      case "rm": {
        const id = await found();
        const person = await noted("user.remove", (trx) => removePerson(trx, organisation.id, id));
        return print(flags, { email: person.email }, [`${person.email} has been removed.`]);
      }
      default:
        throw unknownVerb("user", verb, ["ls", "create EMAIL", "password EMAIL", "role EMAIL", "rm EMAIL"]);
    }
  });
}
