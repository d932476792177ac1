#!/usr/bin/env node
// The command line of an installation: runs the existing build, and builds nothing.
import { run } from "../dist/cli/main.js";

await run(process.argv.slice(2));
