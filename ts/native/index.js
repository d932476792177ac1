// Loads the addon: what a build put beside this file, or else the package for this platform that npm installed with ours.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const BUILT = "./headgate.node";
/** npm installs the one that fits, by the `libc` of its package.json; a package manager that knows no such field both. */
const LIBRARIES = ["gnu", "musl"];

function load() {
  if (existsSync(new URL(BUILT, import.meta.url))) return require(BUILT);
  const platform = `${process.platform}-${process.arch}`;
  const faults = [];
  for (const library of LIBRARIES) {
    const name = `headgate-${platform}-${library}`;
    try {
      return require(name);
    } catch (error) {
      if (error.code !== "MODULE_NOT_FOUND") faults.push(`${name}: ${error.message}`);
    }
  }
  if (faults.length > 0) throw new Error(faults.join("; "));
  throw new Error(
    `headgate-${platform}-gnu (or -musl) is not installed: install without --omit=optional, or build from a clone (npm start)`,
  );
}

export const { duplicateDescriptor, MediaCore, notifyManager, ownOffer, parseOffer, refuseFragment, replayCapture, startMedia, WhipOffer } = load();
