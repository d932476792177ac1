// What stands before every run of real programs: a current build, the programs, the pinned Python, Go and runtimes.
import { BuildError, build, buildLoadGenerator } from "./build.mjs";
import { provideOapiCodegen } from "./go.mjs";
import { providePrograms, toTest } from "./programs.mjs";
import { providePython } from "./python.mjs";
import { provideRuntime } from "./runtimes.mjs";

/** Those of test/runtimes.test.ts, in the whole run; the matrix takes the others when it comes to them. */
const RUNTIMES = ["node-24", "deno", "bun"];

/** Provides all of it, or says what a person can mend and ends the process with 1. */
export function prepareTests() {
  try {
    build();
    buildLoadGenerator();
    const missing = providePrograms(toTest);
    if (missing) throw new BuildError(missing);
    providePython();
    provideOapiCodegen();
    if (process.env.TEST_WHOLE === "yes") RUNTIMES.forEach(provideRuntime);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`headgate: ${error.message}`);
    process.exit(1);
  }
}
