#!/usr/bin/env node
// `npx headgate …` in a clone: runs what `npm start` built, as it is: a command beside a running service replaces none of
// its files, and needs no right to write them.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";
import { main, runBuilt } from "./command.mjs";

const isBuilt = existsSync(join(root, "dist", "cli", "main.js"));
await (isBuilt ? runBuilt : main)(process.argv.slice(2));
