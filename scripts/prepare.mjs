// Prepares a run with real programs: a current build, the programs, the pinned Python, Go and runtimes.
import { BuildError, build, buildLoadGenerator } from "./build.mjs";
import { provideOapiCodegen, providePionWhip } from "./go.mjs";
import { providePrograms, toTest } from "./programs.mjs";
import { providePython } from "./python.mjs";
import { provideRuntime } from "./runtimes.mjs";

/** The runtimes of test/install/whole/runtimes.test.ts in the whole run; the matrix provides the others when it needs them. */
const RUNTIMES = ["node-24", "deno", "bun"];

/** Provides all of it, or reports a problem that the user can fix and exits with 1. */
export function prepareTests() {
  try {
    build();
    buildLoadGenerator();
    const missing = providePrograms(toTest);
    if (missing) throw new BuildError(missing);
    providePython();
    provideOapiCodegen();
    providePionWhip();
    if (process.env.TEST_WHOLE === "yes") RUNTIMES.forEach(provideRuntime);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`headgate: ${error.message}`);
    process.exit(1);
  }
}
