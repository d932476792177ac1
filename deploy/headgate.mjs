#!/usr/bin/env node
// The command line of a finished installation: what was built is run as it is, and nothing is built at a start.
import { run } from "../dist/cli/main.js";

await run(process.argv.slice(2));
