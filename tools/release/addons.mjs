// The addons of libraries for a platform of a release: what npm has installed here, or the packages for another
// platform, which npm does not install.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { hashOf, root, step } from "../../scripts/build.mjs";
import { addonPackages } from "../../scripts/library-files.mjs";
import { withLock } from "../../scripts/lock.mjs";
import { fetchPinned } from "../../scripts/pinned-package.mjs";
import { ownTarget } from "./targets.mjs";

/** @import { Target } from "./targets.mjs" */

/** The folder of a package with an addon, by the name of the package. Other platforms' packages are downloaded once, and
 *  again if the lock file changes.
 *  @param {import("./targets.mjs").Target} target
 *  @returns {(name: string) => string}
 *  @throws {import("../../scripts/build.mjs").BuildError} if one cannot be downloaded, or is not what the lock file pins */
export function provideAddons(target) {
  if (target.name === ownTarget().name) return (name) => join(root, "node_modules", name);
  const folder = join(root, ".build", "addons", target.name);
  withLock(join(root, ".build", "addons-lock"), () => {
    step(`addons of libraries for ${target.name}`, `${folder}-stamp`, hashOf(["package-lock.json"]), () => {
      const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
      for (const name of addonPackages(target)) {
        const { version, integrity } = packages[`node_modules/${name}`];
        fetchPinned(`${name}@${version}`, integrity, join(folder, name));
      }
    });
  });
  return (name) => join(folder, name, "package");
}
