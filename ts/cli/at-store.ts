// Shared by commands that work directly on the store: they open it, whether the service runs or not, act and close it.

import { clock } from "../clock.ts";
import { type Config, loadConfig } from "../config.ts";
import { ConfigInvalid } from "../errors.ts";
import type { Actor } from "../organisation/audit.ts";
import { openStore, type Store } from "../store/open.ts";
import { isStorePresent } from "../store/present.ts";
import type { OrganisationTable } from "../store/schema.ts";
import { ROLES, type Role } from "../store/tables/roles.ts";
import { type GivenFlags, readFlags } from "./flags.ts";

export interface AtStore {
  readonly db: Store["db"];
  readonly config: Config;
  /** Epoch ms. */
  readonly now: number;
}

/** Opens the configured store, also beside a running service. Throws `StoreUnavailable`, and `ConfigInvalid` where no
 *  store exists, unless `makes` allows this command to create one. */
export async function atStore<T>(
  flags: GivenFlags,
  act: (at: AtStore) => Promise<T>,
  { makes = false }: { readonly makes?: boolean } = {},
): Promise<T> {
  const { config } = loadConfig(readFlags(flags));
  if (!makes) await requireStore(config);
  const store = await openStore({ ...config, access: "command" });
  try {
    return await act({ db: store.db, config, now: clock.now() });
  } finally {
    await store.close();
  }
}

/** Throws `ConfigInvalid` where no store exists. */
export async function requireStore(config: Pick<Config, "dataDir" | "databaseUrl">): Promise<void> {
  if (await isStorePresent(config)) return;
  throw new ConfigInvalid(
    config.databaseUrl === null
      ? `there is no store in ${config.dataDir}: set the data directory of your service with --data-dir or HEADGATE_DATA_DIR, or create a new store with headgate init`
      : "the database holds no headgate store: check HEADGATE_DATABASE_URL, or create a new store there with headgate init",
  );
}

/** The organisation given by `--organisation`, or the only one. Throws `ConfigInvalid`. */
export async function chosenOrganisation({ db }: AtStore, flags: GivenFlags): Promise<OrganisationTable> {
  const all = await db.selectFrom("organisation").selectAll().orderBy("created_at").execute();
  const given = typeof flags.organisation === "string" ? flags.organisation : null;
  const found = given === null ? all : all.filter(({ id, hash, name }) => [id, hash, name].includes(given));
  const [only, second] = found;
  if (only !== undefined && second === undefined) return only;
  const list = all.map(({ hash, name }) => `  ${hash}  ${name}`).join("\n");
  if (all.length === 0) throw new ConfigInvalid("the store has no organisation yet: headgate init");
  const fault =
    given === null ? "select one with --organisation:" : `${given} does not name exactly one organisation; there are:`;
  throw new ConfigInvalid(`${fault}\n${list}`);
}

/** The operator at the command line, for the audit log. */
export function operator(organisation: { readonly id: string }): Actor {
  return { organisation, who: { kind: "operator", id: null }, requestId: null };
}

/** The role given by `--role`. Throws `ConfigInvalid`. */
export function roleOf(flags: GivenFlags): Role {
  const role = ROLES.find((known) => known === flags.role);
  if (role === undefined) throw new ConfigInvalid(`--role must be one of ${ROLES.join(", ")}`);
  return role;
}
