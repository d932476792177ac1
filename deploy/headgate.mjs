#!/usr/bin/env node
// The command line of an installation: runs the existing build, and builds nothing.

// A service that this process is to replace tells its operator why that failed. First, and without an import: what is
// broken may be any file of the new version.
process.on("uncaughtExceptionMonitor", (error) => process.send?.({ failed: error.message, stack: error.stack }));
const { run } = await import("../dist/cli/main.js");
await run(process.argv.slice(2));
