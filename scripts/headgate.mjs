#!/usr/bin/env node
// `npx headgate …` in a clone: runs what `npm start` built, without building: a command beside a running service must
// not replace its files, and needs no write access.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";
import { main, runBuilt } from "./command.mjs";

const isBuilt = existsSync(join(root, "dist", "cli", "main.js"));
await (isBuilt ? runBuilt : main)(process.argv.slice(2));
