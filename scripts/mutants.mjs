// `npm run mutants [-- SECONDS]`: puts small faults into the gateway's rules, one at a time, in a copy of this checkout,
// and says which of them no test finds. The sample is fixed: the same code gives the same faults in the same order.
// Not a proof: a fault that changes nothing survives as well, and a person looks at each survivor.
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { root } from "./build.mjs";
import { faultsIn, inFixedOrder } from "./mutations.mjs";
import { testsOf } from "./nearest-tests.mjs";

const FOLDERS = ["ts/publish", "ts/token", "ts/organisation"];
/** How long the run lasts when nothing is said, and one fault's tests at most: a fault may make them wait for ever. */
const STANDARD_S = 1_800;
const TESTS_LIMIT_MS = 300_000;
/** Tests that run first, the nearest to the fault's file; what they miss all others look for that load the file. */
const NEAREST = 4;

const seconds = Number(process.argv[2] ?? STANDARD_S);
const copy = mkdtempSync(join(tmpdir(), "headgate-mutants-"));
/** Ends the tests that run now. */
let endTests = () => {};
process.on("exit", () => {
  endTests();
  rmSync(copy, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
for (const name of [
  "ts",
  "test",
  "scripts",
  "docs",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
  "README.md",
]) {
  cpSync(join(root, name), join(copy, name), { recursive: true });
}
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name)),
).sort();
const faults = inFixedOrder(files.flatMap((file) => faultsIn(file, readFileSync(join(copy, file), "utf8"))));
const endsAt = performance.now() + seconds * 1_000;
const testsFor = testsOf(copy);
/** Test file → whether it is green without any fault: else it says nothing of one. */
const steady = new Map();
const survivors = [];
let killed = 0;
let untested = 0;

for (const fault of faults) {
  if (performance.now() > endsAt) break;
  const tests = testsFor(fault.file);
  if (tests.length === 0) {
    untested += 1;
    continue;
  }
  const nearest = await steadyOf(tests.slice(0, NEAREST));
  const path = join(copy, fault.file);
  const whole = readFileSync(path, "utf8");
  writeFileSync(path, fault.apply(whole));
  let survived = await isGreen(nearest);
  if (survived) {
    writeFileSync(path, whole);
    const others = await steadyOf(tests.slice(NEAREST));
    writeFileSync(path, fault.apply(whole));
    survived = await isGreen(others);
  }
  writeFileSync(path, whole);
  if (survived) survivors.push(fault);
  else killed += 1;
  console.log(`${survived ? "SURVIVED" : "found   "} ${fault.file}:${fault.line} ${fault.was} -> ${fault.is}`);
}

const tried = killed + survivors.length;
const red = [...steady].filter(([, green]) => !green).map(([test]) => test);
console.log(`\n${faults.length} faults can be made; ${untested} met no test that loads their file`);
if (red.length > 0) console.log(`left out, red or too slow without any fault: ${red.join(", ")}`);
for (const { file, line, was, is } of survivors) console.log(`survivor: ${file}:${line} ${was} -> ${is}`);
console.log(`${tried} tried, ${killed} found: ${tried === 0 ? 0 : Math.round((1_000 * killed) / tried) / 10} %`);
process.exit(0);

/** Those of them that are green without any fault; found out when a test is first asked for. */
async function steadyOf(tests) {
  const report = join(copy, "steady.json");
  const unknown = tests.filter((test) => !steady.has(test));
  if (unknown.length > 0) {
    rmSync(report, { force: true });
    await isGreen(unknown, ["--reporter=json", `--outputFile=${report}`]);
    const results = existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : [];
    const green = new Set(results.filter(({ status }) => status === "passed").map(({ name }) => relative(copy, name)));
    for (const test of unknown) steady.set(test, green.has(test));
  }
  return tests.filter((test) => steady.get(test));
}

/** Runs these tests in the copy; red, or over their time, is false. */
function isGreen(tests, options = ["--bail", "1"]) {
  if (tests.length === 0) return Promise.resolve(true);
  return new Promise((resolve) => {
    const args = ["node_modules/vitest/vitest.mjs", "run", "--project", "together", ...options, ...tests];
    const child = spawn(process.execPath, args, { cwd: copy, stdio: "ignore", detached: true });
    // The whole group: test processes that loop would outlive their parent.
    const end = () => void spawnSync("kill", ["-KILL", "--", `-${child.pid}`]);
    const timer = setTimeout(end, TESTS_LIMIT_MS);
    endTests = end;
    child.on("close", (code) => {
      clearTimeout(timer);
      end();
      resolve(code === 0);
    });
  });
}
