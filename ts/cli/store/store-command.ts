// `headgate store copy FROM TO`: copies a store between the embedded file and PostgreSQL, or between two of a kind.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadConfig } from "../../config.ts";
import { ConfigInvalid, StoreFailed } from "../../errors.ts";
import { copyBetween } from "../../store/copy/between.ts";
import { copyKeyFile } from "../../store/copy/key-file.ts";
import { nameOf, type StoreLocation } from "../../store/copy/location.ts";
import { KEY_FILE, openKeyFile } from "../../store/secret-box.ts";
import { requireKeyOf } from "../../token/sealed-keys.ts";
import { type GivenFlags, readFlags } from "../flags.ts";
import { print, table } from "../output.ts";
import { unknownVerb, wanted } from "../words.ts";

export async function runStore([verb, from, to]: readonly string[], flags: GivenFlags): Promise<void> {
  if (verb !== "copy") throw unknownVerb("store", verb, ["copy FROM TO"]);
  const source = locationOf(wanted(from, "where to copy from, a data directory or a postgresql:// URL,"));
  const target = locationOf(wanted(to, "where to copy to, a data directory or a postgresql:// URL,"));
  if (nameOf(source) === nameOf(target)) throw new ConfigInvalid(`${nameOf(source)} cannot be copied to itself`);
  const key = keyOf(source, flags);
  const box = openKeyFile(key);
  let forget = (): void => {};
  const keep = () => {
    if (target.kind === "embedded") forget = copyKeyFile(key, join(target.dataDir, KEY_FILE));
  };
  const check = async ({ db }: { readonly db: Parameters<typeof requireKeyOf>[0] }) => await requireKeyOf(db, box);
  const tables = await interruptible(
    (signal) => copyBetween(source, target, { signal, keep, check }),
    `interrupted: ${nameOf(target)} is empty again`,
  ).catch((error: unknown) => {
    forget();
    throw error;
  });
  const rows = tables.reduce((sum, each) => sum + each.rows, 0);
  const said = { from: nameOf(source), to: nameOf(target), rows, tables, key };
  print(flags, said, [
    ...table([["table", "rows", ""], ...tables.map(({ table, rows }) => [table, rows, "equal"])]),
    "",
    `${rows} rows of ${said.from} are in ${said.to}, each compared with its source row.`,
    target.kind === "embedded"
      ? `${join(target.dataDir, KEY_FILE)} is its key. Start the service with data_dir = "${target.dataDir}" and without database_url.`
      : `Start the service with this database_url, and with ${key} as headgate.key in the data directory of each node.`,
    `${said.from} is unchanged: never run a service on both.`,
  ]);
}

function locationOf(text: string): StoreLocation {
  return /^postgres(ql)?:\/\//.test(text)
    ? { kind: "postgres", databaseUrl: text }
    : { kind: "embedded", dataDir: resolve(text) };
}

/** Path of the key file that seals the secrets of the source. Throws `ConfigInvalid` when it is missing. */
function keyOf(source: StoreLocation, flags: GivenFlags): string {
  const given = typeof flags.key === "string" ? resolve(flags.key) : null;
  const folder = source.kind === "embedded" ? source.dataDir : loadConfig(readFlags(flags)).config.dataDir;
  const path = given ?? join(folder, KEY_FILE);
  if (existsSync(path)) return path;
  throw new ConfigInvalid(
    `there is no ${path}: set --key FILE to the key file that the store's secrets are encrypted with${source.kind === "postgres" ? ", or its data directory by --data-dir" : ""}`,
  );
}

/** Whatever asks a command to end: ^C, a closed terminal, a service manager. */
const ENDING = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

/** Runs `act` with a signal that those signals abort. */
async function interruptible<T>(act: (signal: AbortSignal) => Promise<T>, message: string): Promise<T> {
  const controller = new AbortController();
  const abort = () => controller.abort(new StoreFailed(message));
  for (const name of ENDING) process.on(name, abort);
  try {
    return await act(controller.signal);
  } finally {
    for (const name of ENDING) process.off(name, abort);
  }
}
