// Shows the key and the password that the first start of a new store generates, once: to the person who started it, or
// in a file of the data directory. Whatever is logged can be read by everybody who reads logs, so they are never
// logged.
import { appendFileSync, chmodSync, fstatSync } from "node:fs";
import { join } from "node:path";
import { type Config, readJournalStream } from "../../config.ts";
import { reasonOf } from "../../reason.ts";

const STANDARD_ERROR = 2;
const FILE = "first-start.txt";

/** Shows them on behalf of `serve` in main.ts. A file that cannot be written does not fail the start: new credentials
 *  can be created afterwards. */
export function firstStart({ dataDir, bootstrap }: Pick<Config, "dataDir" | "bootstrap">): {
  announceKey(key: string): void;
  announcePassword(password: string, dashboard: string): void;
} {
  const inFile = bootstrap.show === "file" || (bootstrap.show === "auto" && isLog());
  const path = join(dataDir, FILE);
  let isAnnounced = false;
  const show = (lines: readonly string[]): void => {
    const fault = inFile ? write(path, lines) : null;
    if (!inFile) console.error(lines.join("\n"));
    else if (fault !== null)
      console.error(
        `headgate: this is a new store, and ${path} cannot be written (${fault}): create a key with headgate keys create --role administrator, and a password with headgate user password admin`,
      );
    else if (!isAnnounced)
      console.error(
        `headgate: this is a new store. Its API key and password are in ${path}: store them elsewhere, then delete the file`,
      );
    isAnnounced = true;
  };
  return {
    announceKey: (key) =>
      show([
        "",
        "  This is a new store. Its administrator API key, shown only once:",
        "",
        `      ${key}`,
        "",
        "  Send it in the header x-service-apikey, and store it like any other secret.",
        "",
      ]),
    announcePassword: (password, dashboard) =>
      show([
        "",
        `  The dashboard is at ${dashboard}`,
        "  The first person signs in as admin. The password, shown only once:",
        "",
        `      ${password}`,
        "",
      ]),
  };
}

/** Whether standard error is recorded: it is the journal of systemd, or a file. A pipe is read by whoever created it;
 *  where that is a log collector, as for containers, use the setting. */
function isLog(): boolean {
  const standardError = fstatSync(STANDARD_ERROR);
  return standardError.isFile() || readJournalStream() === `${standardError.dev}:${standardError.ino}`;
}

/** Why the file cannot be written; null on success. */
function write(path: string, lines: readonly string[]): string | null {
  try {
    appendFileSync(path, `${lines.join("\n")}\n`, { mode: 0o600, flush: true });
    chmodSync(path, 0o600);
    return null;
  } catch (error) {
    return reasonOf(error);
  }
}
