// `headgate backup FILE`: backs up the store while the service runs, and its key if requested.
import { join, resolve } from "node:path";
import { loadConfig } from "../../config.ts";
import { ConfigInvalid } from "../../errors.ts";
import { backUp } from "../../store/backup.ts";
import { copyKeyFile } from "../../store/copy/key-file.ts";
import { KEY_FILE } from "../../store/secret-box.ts";
import { requireStore } from "../at-store.ts";
import { type GivenFlags, readFlags } from "../flags.ts";
import { print } from "../output.ts";
import { wanted } from "../words.ts";

/** Runs `backup` and `restore`. */
export async function runBackup(words: readonly string[], flags: GivenFlags): Promise<void> {
  const file = wanted(words[0], "the file to write");
  const { config } = loadConfig(readFlags(flags));
  if (config.databaseUrl !== null) {
    throw new ConfigInvalid(
      `the store is in PostgreSQL, which has its own tool: pg_dump --format=custom --file=${file} "$HEADGATE_DATABASE_URL"`,
    );
  }
  await requireStore(config);
  const bytes = backUp(config.dataDir, file);
  const key = typeof flags.key === "string" ? resolve(flags.key) : null;
  if (key !== null) copyKeyFile(join(config.dataDir, KEY_FILE), key);
  print(flags, { file, bytes, ...(key && { key }) }, [
    `${file} holds the store (${bytes} bytes). To use it: headgate restore ${file} --key FILE --data-dir NEW_FOLDER`,
    key === null
      ? `Also keep ${config.dataDir}/headgate.key, in a separate place: without it nobody can read the secrets in the copy.`
      : `${key} is its key. Keep it in a separate place: anyone who has both can read the secrets, and without it nobody can.`,
  ]);
}
