// The package.json of an installation: what the service reads of it, and nothing that an installer would act on.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const KEPT = [
  ...["name", "version", "description", "license", "type", "private", "bin", "imports", "engines"],
  ...["os", "cpu", "libc", "gitHead"],
];

/** That of a clone or an installation.
 *  @param {string} folder */
export function manifestOf(folder) {
  const all = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const kept = Object.fromEntries(KEPT.filter((field) => field in all).map((field) => [field, all[field]]));
  return { ...kept, bin: { headgate: "deploy/headgate.mjs" } };
}
