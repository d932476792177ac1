// `npm test [-- FILTER]`: builds, checks that the real programs are installed, and runs the Rust and TypeScript tests
// that take minutes. `npm test -- --whole [FILTER]` runs every test.
import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { root } from "./build.mjs";
import { prepareTests } from "./prepare.mjs";
import { retriedIn } from "./retried-tests.mjs";

const filter = process.argv.slice(2).filter((word) => word !== "--whole");
const isWholeRun = process.argv.includes("--whole");
/** Rust tests in parallel, unless RUST_TEST_THREADS is set: those that use sockets mostly wait. */
const RUST_THREADS = 8;
const counts = { passed: 0, failed: 0, skipped: 0 };

if (isWholeRun) process.env.TEST_WHOLE = "yes";
prepareTests();

process.env.RUST_TEST_THREADS ??= String(RUST_THREADS);
const cargo = ["test", "--profile", "tests", "--locked", "--workspace"];
const built = await run("cargo", [...cargo, "--no-run"]);
// Both suites run to their end in parallel, whatever fails in the other: the Rust tests mostly wait. The output of the
// second one follows that of the first.
const reporters = ["--reporter=default", "--reporter=./scripts/retried-tests.mjs"];
const rustRuns =
  built.code === 0 ? run("cargo", [...cargo, "--no-fail-fast", "--", ...filter]) : Promise.resolve(built);
const vitestRuns = run(
  process.execPath,
  ["node_modules/vitest/vitest.mjs", "run", "--passWithNoTests", ...reporters, ...filter],
  rustRuns,
);
const [rust, vitest] = await Promise.all([rustRuns, vitestRuns]);
for (const [line] of rust.output.matchAll(/^test result: .*$/gm)) count(line);
const said = stripVTControlCharacters(vitest.output);
count(said.match(/^\s*Tests\s+.*$/m)?.[0] ?? "");
const retried = retriedIn(said);

// A test that passes only when retried has an intermittent fault, which CI does not accept.
const isUnsteady = retried > 0 && Boolean(process.env.CI);
// A suite that fails without a failed test did not compile, or its process died.
const isRed = rust.code !== 0 || vitest.code !== 0;
if (isRed && counts.failed === 0) counts.failed = 1;
const why = isWholeRun ? "" : ", most of them for the whole run: npm test -- --whole";
console.log(counts.skipped > 0 ? `\n${counts.skipped} skipped${why}` : "");
console.log(`${retried} retried${isUnsteady ? ", which CI does not accept" : ""}`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(isRed || isUnsteady ? 1 : 0);

/** Adds the numbers of a summary line of cargo or vitest. */
function count(line) {
  const number = (what) => Number(new RegExp(`(\\d+) (?:${what})`).exec(line)?.[1] ?? 0);
  counts.passed += number("passed");
  counts.failed += number("failed");
  counts.skipped += number("ignored|skipped|todo");
}

/** Runs a command and shows its output as it arrives, but not before `turn` is over. */
function run(command, args, turn = Promise.resolve()) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    let [output, isShown] = ["", false];
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => {
        output += text;
        if (isShown) process[name].write(text);
      });
    }
    const shown = turn.then(() => {
      process.stdout.write(output);
      isShown = true;
    });
    shown.catch(reject);
    child.on("error", reject).on("close", (code) => shown.then(() => resolve({ code, output }), reject));
  });
}
