// The files of libraries that are not code of a bundle: addons, one for each library that has native code, and what the
// page /docs loads.
import { chmodSync, copyFileSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";

/** The name of an addon in dist/libraries → the package that contains it for a platform, and its `main`. */
const ADDONS = {
  argon2: ({ name }) => [`@node-rs/argon2-${name}`, `argon2.${name}.node`],
  libsql: ({ name }) => [`@libsql/${name}`, "index.node"],
};
/** The package is four times larger, and runs a script when it is installed. */
const PAGE = "swagger-ui-dist";
const PAGE_FILES = ["swagger-ui.css", "swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"];

/** The packages with addons for a platform.
 *  @param {import("../tools/release/targets.mjs").Target} target
 *  @returns {string[]} */
export const addonPackages = (target) => Object.values(ADDONS).map((of) => of(target)[0]);

/** Copies the addons for a platform. Files are replaced, not overwritten: a running service may have the former ones
 *  mapped.
 *  @param {(name: string) => string} folderOf the folder of a package
 *  @param {import("../tools/release/targets.mjs").Target} target
 *  @param {string} to */
export function copyAddons(folderOf, target, to) {
  mkdirSync(to, { recursive: true });
  for (const [library, of] of Object.entries(ADDONS)) {
    const path = join(to, `${library}.node`);
    rmSync(path, { force: true });
    const [name, file] = of(target);
    copyFileSync(join(folderOf(name), file), path);
    chmodSync(path, 0o644);
  }
}

/** @param {string} to folder */
export function copyPageFiles(to) {
  mkdirSync(to, { recursive: true });
  for (const name of PAGE_FILES) copyFileSync(join(root, "node_modules", PAGE, name), join(to, name));
}
