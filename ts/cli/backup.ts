// `headgate backup FILE`: a copy of the store while the service runs.
import { loadConfig } from "../config.ts";
import { ConfigInvalid } from "../errors.ts";
import { backUp } from "../store/backup.ts";
import { requireStore, wanted } from "./at-store.ts";
import { type GivenFlags, readFlags } from "./flags.ts";
import { print } from "./output.ts";

export async function runBackup(words: readonly string[], flags: GivenFlags): Promise<void> {
  const file = wanted(words[0], "the file to write");
  const { config } = loadConfig(readFlags(flags));
  if (config.databaseUrl !== null) {
    throw new ConfigInvalid(
      `the store is in PostgreSQL, which has its own: pg_dump --format=custom --file=${file} "$HEADGATE_DATABASE_URL"`,
    );
  }
  await requireStore(config);
  const bytes = backUp(config.dataDir, file);
  print(flags, { file, bytes }, [
    `${file} holds the store (${bytes} bytes). To use it, stop the service and put it in place of headgate.db.`,
    `Keep ${config.dataDir}/headgate.key too, in another place: without it nobody reads the secrets of the copy.`,
  ]);
}
