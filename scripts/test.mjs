// `npm test [-- FILTER]`: builds, sees that the real programs are there, runs every Rust and TypeScript test.
import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { BuildError, build, root } from "./build.mjs";
import { providePrograms, toTest } from "./programs.mjs";

const filter = process.argv.slice(2);
const counts = { passed: 0, failed: 0 };

try {
  build();
  const missing = providePrograms(toTest);
  if (missing) throw new BuildError(missing);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}

const rust = await run("cargo", ["test", "--release", "--locked", "--workspace", ...filter]);
for (const [, passed, failed] of rust.output.matchAll(/test result: \w+\. (\d+) passed; (\d+) failed/g)) {
  counts.passed += Number(passed);
  counts.failed += Number(failed);
}
const vitest = await run(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--passWithNoTests", ...filter]);
const summary = stripVTControlCharacters(vitest.output).match(/^\s*Tests\s+.*$/m)?.[0] ?? "";
counts.passed += Number(/(\d+) passed/.exec(summary)?.[1] ?? 0);
counts.failed += Number(/(\d+) failed/.exec(summary)?.[1] ?? 0);

const failed = rust.code !== 0 || vitest.code !== 0;
if (failed && counts.failed === 0) counts.failed = 1;
console.log(`\n${counts.passed} passed, ${counts.failed} failed`);
process.exit(failed ? 1 : 0);

/** Runs a command, showing what it prints as it comes. */
function run(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => {
        output += text;
        process[name].write(text);
      });
    }
    child.on("error", reject).on("close", (code) => resolve({ code, output }));
  });
}
