// Loads the addon of the media core, which a build or a package has put beside this file.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const FILE = new URL("./headgate.node", import.meta.url);

function load() {
  const path = fileURLToPath(FILE);
  if (existsSync(FILE)) return createRequire(import.meta.url)(path);
  throw new Error(`${path} is missing: install the package again, or build it in a clone (npm start)`);
}

export const { duplicateDescriptor, MediaCore, notifyManager, ownOffer, parseOffer, refuseFragment, replayCapture, startMedia, WhipOffer } = load();
