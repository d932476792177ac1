// The folder that becomes the package of the service for one platform: everything that runs there, and no dependency, so
// that nothing is asked of a registry when it is installed.
import { chmodSync, copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { copyAddons } from "../../scripts/library-files.mjs";
import { manifestOf } from "./manifest.mjs";

/** @import { Target } from "./targets.mjs" */

/** Parts of the service's folder in a clone: what runs, documentation, and what an operator installs. */
const SERVICE = ["dist", "docs", "deploy/headgate.mjs", "deploy/systemd", "deploy/kubernetes", "ts/native/index.js"];
const TEXTS = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"];
/** Made by `npm run licences`, and by `npm run release` itself. */
const LEGAL = ["licences.txt", "sbom.cdx.json"];
/** The media core in a package.
 *  @type {string} */
export const CORE = "ts/native/headgate.node";
const NOT_SERVED = ["dist/release", ...LEGAL.map((name) => `dist/${name}`)];

/** Puts the service into `folder`. Needs what `npm start` builds and what `npm run licences` writes.
 *  @param {string} folder recreated
 *  @param {object} options
 *  @param {import("./targets.mjs").Target} options.target
 *  @param {string} options.core path of the media core for it
 *  @param {(name: string) => string} options.addons see `provideAddons`
 *  @param {string | null} options.commit */
export function makeService(folder, { target, core, addons, commit }) {
  rmSync(folder, { recursive: true, force: true });
  const excluded = NOT_SERVED.map((path) => join(root, path));
  for (const path of [...SERVICE, ...TEXTS]) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    cpSync(join(root, path), join(folder, path), { recursive: true, filter: (from) => !excluded.includes(from) });
  }
  for (const name of LEGAL) copyFileSync(join(root, "dist", name), join(folder, name));
  copyFileSync(core, join(folder, CORE));
  chmodSync(join(folder, CORE), 0o644);
  copyAddons(addons, target, join(folder, "dist", "libraries"));
  chmodSync(join(folder, "deploy", "headgate.mjs"), 0o755);
  const manifest = {
    // Private in a clone, and so here: of one name and version a registry could hold only one platform's.
    ...manifestOf(root),
    ...{ os: ["linux"], cpu: [target.cpu], libc: [target.libc] },
    // The commit, as npm records it in published packages.
    ...(commit === null ? {} : { gitHead: commit }),
  };
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}
