// Doctor: the store: whether it opens, whether the key file belongs to it, and data for other findings.
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { sql } from "kysely";
import { clock } from "../../clock.ts";
import type { Config } from "../../config.ts";
import { reasonOf } from "../../reason.ts";
import { requireNothing } from "../../store/new-store.ts";
import { openStore, type Store } from "../../store/open.ts";
import { isStorePresent } from "../../store/present.ts";
import { KEY_FILE, openKeyFile } from "../../store/secret-box.ts";
import { type LargestShare, largestHolders, largestShares, TABLE_BOUNDS } from "../../store/table-bounds.ts";
import { requireKeyOf } from "../../token/sealed-keys.ts";
import { type Finding, good, type Trouble } from "./finding.ts";
import type { Reference } from "./machine.ts";
import type { CustomerWebhook } from "./webhooks.ts";

export interface Stored {
  readonly findings: readonly Finding[];
  readonly webhooks: readonly CustomerWebhook[];
  /** Time of the newest record, epoch ms; null for none. */
  readonly newestAt: number | null;
  /** The database server's clock; empty for the embedded store. */
  readonly references: readonly Reference[];
  /** False when there is no store to read. */
  readonly isOpen: boolean;
}

export async function stored(config: Config): Promise<Stored> {
  const isPostgres = config.databaseUrl !== null;
  const what = isPostgres ? "store in PostgreSQL" : `store in ${config.dataDir}`;
  const nothing = { webhooks: [], newestAt: null, references: [], isOpen: false };
  if (!(await isStorePresent(config))) {
    const obstacle = isPostgres ? null : obstacleIn(config.dataDir);
    if (obstacle !== null) return { ...nothing, findings: [{ what, ...obstacle }] };
    const finding: Finding = {
      what,
      state: "warning",
      detail: "it does not exist yet: headgate serve or headgate init creates it",
      why: "starting the service creates a new one, with a new key and a new administrator",
      remedy: isPostgres
        ? "none for a new deployment; otherwise check HEADGATE_DATABASE_URL"
        : "none for a new deployment; otherwise set the data directory with --data-dir or HEADGATE_DATA_DIR",
    };
    return { ...nothing, findings: [finding] };
  }
  // Checked before the store is opened, which creates folders.
  const isKeyThere = existsSync(join(config.dataDir, KEY_FILE));
  try {
    const store = await openStore({ ...config, access: "command" });
    try {
      return { ...(await asked(store, config, what, isKeyThere)), isOpen: true };
    } finally {
      await store.close();
    }
  } catch (error) {
    const finding: Finding = {
      what,
      state: "bad",
      detail: reasonOf(error),
      why: "it holds streams, keys and webhooks: headgate serve exits with 4",
      remedy: isPostgres
        ? "check that the server is running, that this machine may connect, and that name and password are correct"
        : "check that the service's user may read and write the directory; replace a damaged file with headgate restore",
    };
    return { ...nothing, findings: [finding] };
  }
}

/** Why a start would create no store. */
function obstacleIn(dataDir: string): Omit<Trouble, "what"> | null {
  try {
    requireNothing(dataDir);
    return null;
  } catch (error) {
    return {
      state: "bad",
      detail: reasonOf(error),
      why: "headgate serve exits with 4",
      remedy: "decide whether a store is missing or a new one is wanted, as the message says",
    };
  }
}

async function asked(
  { db }: Store,
  config: Config,
  what: string,
  isKeyThere: boolean,
): Promise<Omit<Stored, "isOpen">> {
  const { streams } = await db
    .selectFrom("stream")
    .select((eb) => eb.fn.countAll<number>().as("streams"))
    .executeTakeFirstOrThrow();
  const organisations = await db
    .selectFrom("organisation")
    .leftJoin("webhook_copy", "webhook_copy.organisation_id", "organisation.id")
    .select(["name", "webhook", "webhook_copy.url as copies"])
    .where("enabled", "=", 1)
    .orderBy("created_at", "desc")
    .execute();
  const webhookOf = ({ name, webhook, copies }: (typeof organisations)[number]) => [
    ...(webhook === null ? [] : [{ name, url: webhook, isSecond: false }]),
    ...(copies === null ? [] : [{ name, url: copies, isSecond: true }]),
  ];
  const publish = await db.selectFrom("publish").select("asked_at").orderBy("client_id", "desc").limit(1).execute();
  const change = await db.selectFrom("audit").select("at").orderBy("id", "desc").limit(1).execute();
  const newest = [...publish.map((row) => row.asked_at), ...change.map((row) => row.at)].map(Number);
  const references: Reference[] = [];
  if (config.databaseUrl !== null) {
    const { rows } = await sql<{ ms: number }>`select extract(epoch from clock_timestamp()) * 1000 as ms`.execute(db);
    references.push({ source: "the database server", at: Number(rows[0]?.ms), readAt: clock.now() });
  }
  return {
    findings: [
      good(what, `opens, ${streams} streams`),
      good("organisations with the most in the store", sharesIn(await largestHolders(db, HOLDERS_SHOWN))),
      boundsOf(await largestShares(db)),
      await keyOf(db, config, isKeyThere),
    ],
    webhooks: organisations.flatMap(webhookOf),
    newestAt: newest.length === 0 ? null : Math.max(...newest),
    references,
  };
}

/** How many organisations one line names. */
const HOLDERS_SHOWN = 5;

function sharesIn(holders: Awaited<ReturnType<typeof largestHolders>>): string {
  if (holders.length === 0) return "none has any records";
  return holders.map(({ name, bytes, rows }) => `${name} ${(bytes / 1e6).toFixed(1)} MB in ${rows} records`).join(", ");
}

/** A share of what an organisation may have from which the operator should act. */
const NEARLY_FULL = 0.9;

/** Who has most of each bounded table, and whether that is nearly as much as one organisation may have. */
function boundsOf(shares: readonly LargestShare[]): Finding {
  const what = "largest share of each bounded table";
  const inWords = ({ table, organisation, rows, bytes, used }: LargestShare) =>
    `${table}: ${organisation} ${rows} records, ${(bytes / 1e6).toFixed(1)} MB (${Math.round(used * 100)} % of its limit)`;
  const full = shares.filter(({ table, used }) => used >= NEARLY_FULL && TABLE_BOUNDS[table].full === "refused");
  if (shares.length === 0) return good(what, "none has any records");
  if (full.length === 0) return good(what, shares.map(inWords).join("; "));
  return {
    what,
    state: "warning",
    detail: full.map(inWords).join("; "),
    why: "further requests of this organisation that add to the table are refused; other organisations are not affected",
    remedy: full.map(({ table }) => `${table}: ${TABLE_BOUNDS[table].remedy}`).join("; "),
  };
}

/** Whether headgate.key exists, belongs to this store, and is readable only by its owner. */
async function keyOf(db: Store["db"], { dataDir }: Config, isThere: boolean): Promise<Finding> {
  const path = join(dataDir, KEY_FILE);
  const what = `key ${path}`;
  const why =
    "it decrypts the secrets in the store: keys of web tokens, webhook secrets, upstreams. Without the right one headgate serve exits with 4";
  const remedy = "restore the copy that was made with the backup, or copy it from another node";
  if (!isThere) return { what, state: "bad", detail: "is missing", why, remedy };
  try {
    await requireKeyOf(db, openKeyFile(path));
  } catch (error) {
    return { what, state: "bad", detail: reasonOf(error), why, remedy };
  }
  if ((statSync(path).mode & 0o077) === 0) return good(what, "decrypts the secrets of this store");
  return {
    what,
    state: "warning",
    detail: "other users of this machine can read it",
    why: "together with a copy of the store it reveals every secret",
    remedy: `chmod 600 ${path}`,
  };
}
