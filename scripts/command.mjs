// The command line of a clone, run in this process.
import { BuildError, build } from "./build.mjs";

/** Builds what changed, then runs the command.
 *  @param {readonly string[]} argv */
export async function main(argv) {
  try {
    build();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`headgate: ${error.message}`);
    process.exit(1);
  }
  await runBuilt(argv);
}

/** Runs what was built.
 *  @param {readonly string[]} argv */
export async function runBuilt(argv) {
  const { run } = await import("../dist/cli/main.js");
  await run(argv);
}
