// `npm run mutants [-- COUNT [SKIPPED] | N,N,…]`: puts small faults into the gateway's rules, one at a time, in copies
// of this checkout, and reports which of them no test detects. The sample is fixed: the same code gives the same faults
// in the same order.
// `npm run mutants -- crates …` has cargo-mutants do it for the protocol crates (mutants/crates.mjs).
// This is not a proof: a fault without effect survives as well, so each survivor must be reviewed.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/build.mjs";
import { coveringTests } from "./mutants/covering-tests.mjs";
import { tryCrates } from "./mutants/crates.mjs";
import { FOLDERS, faultsIn, inFixedOrder } from "./mutants/faults.mjs";
import { testsOf } from "./mutants/nearest-tests.mjs";
import { openRunner } from "./mutants/test-runner.mjs";

const STANDARD_COUNT = 200;
/** Faults that are tried in parallel, each in its own copy. */
const TOGETHER = 4;
/** Test files of the first run, those nearest to the fault, and of the second one. What they miss counts as not
 *  detected: a distant test that happens to fail does not test the faulty code. */
const NEAREST = 2;
const FURTHER = 8;
/** A file that takes this long is placed one position later, ms. */
const SLOW_MS = 20_000;
/** A fault may make tests hang: their limit is this multiple of the time they took without it, plus this in ms. */
const PATIENCE = 3;
const PATIENCE_MS = 30_000;

if (process.argv[2] === "crates") {
  process.exit(tryCrates(process.argv.slice(3)));
}
const [first = String(STANDARD_COUNT), skipped = "0"] = process.argv.slice(2);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name)),
).sort();
const faults = inFixedOrder(files.flatMap((file) => faultsIn(file, readFileSync(join(root, file), "utf8"))));
/** [number in the sample, fault] */
const sample = first.includes(",")
  ? first.split(",").map((at) => [Number(at), faults[Number(at)]])
  : [...faults.entries()].slice(Number(skipped), Number(skipped) + Number(first));
const testsFor = testsOf(root);
const { covering, red: unsteady } = await coveringTests([...new Set(files.flatMap(testsFor))].sort());
/** Parts of test files that have been run without a fault, and whether they passed; complete files are known to. */
const steady = new Map();
const survivors = [];
let found = 0;

const waiting = [...sample];
await Promise.all(
  Array.from({ length: TOGETHER }, async () => {
    const runner = openRunner();
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [at, fault] = next;
      const finding = await findingOf(runner, fault);
      if (finding === null) survivors.push(fault);
      else found += 1;
      const what = `${fault.file}:${fault.line} ${fault.was} -> ${fault.is}`;
      console.log(`${at} ${finding === null ? `SURVIVED ${what}` : `found    ${what}\n      ${finding}`}`);
    }
    runner.close();
  }),
);

console.log(`\n${faults.length} faults can be made`);
if (unsteady.length > 0) console.log(`left out, red without any fault: ${unsteady.join(", ")}`);
for (const { file, line, was, is } of survivors) console.log(`survivor: ${file}:${line} ${was} -> ${is}`);
console.log(`${sample.length} tried, ${found} found: ${Math.round((1_000 * found) / sample.length) / 10} %`);
process.exit(0);

/** What detects the fault; null if nothing does. */
async function findingOf(runner, fault) {
  const order = testsFor(fault.file);
  const rank = ({ file, took }) => (order.indexOf(file) === -1 ? order.length : order.indexOf(file)) + took / SLOW_MS;
  const specs = covering(fault.file, fault.line).sort((a, b) => rank(a) - rank(b));
  for (const batch of [specs.slice(0, NEAREST), specs.slice(NEAREST, NEAREST + FURTHER)]) {
    if (batch.length === 0) break;
    const said = await runner.run(batch, limitOf(batch), fault);
    if (said === null) return "its tests do not finish";
    for (const { file, tests } of said.red) {
      const spec = batch.find((each) => each.file === file);
      if (await isSteady(runner, spec)) return `${file}: ${tests[0] ?? "does not load"}`;
      console.log(`      ${file} is red without the fault too: ${spec.ids}`);
    }
  }
  return null;
}

/** Whether the same tests are green without any fault. */
async function isSteady(runner, spec) {
  if (spec.ids === undefined) return true;
  const key = JSON.stringify([spec.file, spec.ids]);
  if (!steady.has(key)) {
    const said = await runner.run([spec], limitOf([spec]));
    steady.set(key, said !== null && said.red.length === 0);
  }
  return steady.get(key);
}

function limitOf(specs) {
  return PATIENCE_MS + PATIENCE * specs.reduce((sum, { took }) => sum + took, 0);
}
