// What a package may contain: what runs, and documentation; no sources of the core, no tests, no path of the machine
// that made it, no secret, no name of another package, and not too much.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { faultsOfNames } from "./names.mjs";

const STRANGERS = [
  [/(^|\/)(test|tests|crates|target|node_modules|\.git|\.build|\.env|data)(\/|$)/, "does not belong in a package"],
  [/\.(rs|map|pem|key|db|sqlite|log|tgz)$/, "does not belong in a package"],
  [/(?<!\.d)\.m?tsx?$/, "is a source that was not compiled"],
];
const SECRETS = [/-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/]{32}/, /\bhg_[A-Za-z0-9]{30,}/];

/** A package that exceeds this contains something twice, or for another platform.
 *  @type {number} */
export const PACKAGE_LIMIT_BYTES = 40_000_000;

/** Every file of a package's folder with its bytes, in the order of names.
 *  @param {string} folder */
export function contentsOf(folder) {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort()
    .map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
}

/** What must not be in it, as `file: why`. `excepted`: files whose texts may name this machine's folders.
 *  @param {string} folder
 *  @param {readonly string[]} excepted
 *  @returns {Promise<string[]>} */
export async function faultsOfContents(folder, excepted = []) {
  const paths = [root, join(homedir(), ".cargo"), join(homedir(), ".rustup"), join(homedir(), ".npm")];
  const contents = contentsOf(folder);
  const bytes = contents.reduce((sum, each) => sum + each.bytes, 0);
  const large = bytes > PACKAGE_LIMIT_BYTES ? [`has ${bytes} bytes, more than ${PACKAGE_LIMIT_BYTES}`] : [];
  const strange = contents.flatMap(({ name }) => {
    const text = readFileSync(join(folder, name), "latin1");
    const odd = STRANGERS.filter(([form]) => form.test(name)).map(([, why]) => why);
    const named = excepted.includes(name) ? [] : paths.filter((path) => text.includes(`${path}/`));
    const secret = SECRETS.some((form) => form.test(text)) ? ["holds a secret"] : [];
    return [...odd, ...named.map((path) => `names ${path}`), ...secret].map((why) => `${name}: ${why}`);
  });
  return [...large, ...strange, ...(await faultsOfNames(folder))];
}
