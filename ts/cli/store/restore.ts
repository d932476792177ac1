// `headgate restore FILE`: restores a backup into a data directory without a store, with its key.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadConfig } from "../../config.ts";
import { ConfigInvalid } from "../../errors.ts";
import { copyKeyFile } from "../../store/copy/key-file.ts";
import { restore } from "../../store/copy/restore.ts";
import { KEY_FILE, openKeyFile } from "../../store/secret-box.ts";
import { requireKeyOf } from "../../token/sealed-keys.ts";
import { type GivenFlags, readFlags } from "../flags.ts";
import { print } from "../output.ts";
import { wanted } from "../words.ts";

export async function runRestore(words: readonly string[], flags: GivenFlags): Promise<void> {
  const file = resolve(wanted(words[0], "the backup to restore"));
  const { config } = loadConfig(readFlags(flags));
  if (config.databaseUrl !== null) {
    throw new ConfigInvalid(
      "the store is in PostgreSQL, which has its own tool: pg_restore; to move a backup of the embedded store there, use headgate restore without database_url, then headgate store copy",
    );
  }
  const own = join(config.dataDir, KEY_FILE);
  const key = typeof flags.key === "string" ? resolve(flags.key) : own;
  if (!existsSync(key)) {
    throw new ConfigInvalid(
      `there is no ${key}: set --key FILE to the key of the backup; without it, its secrets are lost`,
    );
  }
  const box = openKeyFile(key);
  const { streams } = await restore(file, config.dataDir, {
    check: async (db) => await requireKeyOf(db, box),
    keep: () => copyKeyFile(key, own),
  });
  print(flags, { file, dataDir: config.dataDir, streams }, [
    `${config.dataDir} holds the store of ${file} (${streams} streams), and its key. Start the service.`,
  ]);
}
