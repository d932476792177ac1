// Loads the addon that the build puts beside this file.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

export const { MediaCore, notifyManager, ownOffer, parseOffer, refuseFragment, replayCapture, startMedia, WhipOffer } = require("./headgate.node");
