// `npm run mutants -- crates [COUNT [SKIPPED] | N,N,…]`: the same for the protocol crates, in one copy of the
// workspace. Each fault costs a build of its crate's unit tests and, if they pass, of its other tests: all of them run.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { CRATES, crateFaultsIn } from "./crate-faults.mjs";
import { inFixedOrder } from "./faults.mjs";

const STANDARD_COUNT = 50;
const COPIED = ["Cargo.toml", "Cargo.lock", "crates"];
/** Limit of the tests of one crate, ms; a fault may make them hang. */
const LIMIT_MS = 300_000;
/** Takes longer without optimisation than all other unit tests together: it runs after they have passed. */
const SLOW_TEST = "a_path_that_loses_one_in_twenty_costs_hardly_a_picture";
const OUTPUT_LIMIT_BYTES = 64 << 20;

/** Prints the result of each fault; returns true if the tests pass without any. */
export function tryCrates([first = String(STANDARD_COUNT), skipped = "0"]) {
  const copy = mkdtempSync(join(tmpdir(), "headgate-mutants-"));
  process.on("exit", () => rmSync(copy, { recursive: true, force: true }));
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
  const faults = inFixedOrder(CRATES.flatMap(([folder, name, spared]) => faultsOf(folder, name, spared)));
  /** [number in the sample, fault] */
  const sample = first.includes(",")
    ? first.split(",").map((at) => [Number(at), faults[Number(at)]])
    : [...faults.entries()].slice(Number(skipped), Number(skipped) + Number(first));
  for (const [, name] of CRATES) {
    const { finding } = tested(copy, name);
    if (finding !== null) throw new Error(`the tests of ${name} are red without any fault: ${finding}`);
  }

  const survivors = [];
  let tried = 0;
  for (const [at, fault] of sample) {
    const path = join(copy, fault.file);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, fault.apply(text));
    const { compiles, finding } = tested(copy, fault.package);
    writeFileSync(path, text);
    const what = `${fault.file}:${fault.line} ${fault.was} -> ${fault.is}`;
    console.log(
      `${at} ${compiles ? (finding === null ? "SURVIVED" : "found   ") : "no fault"} ${what} ${finding ?? ""}`,
    );
    if (!compiles) continue;
    tried += 1;
    if (finding === null) survivors.push(what);
  }
  console.log(`\n${faults.length} faults can be made`);
  for (const what of survivors) console.log(`survivor: ${what}`);
  const found = tried - survivors.length;
  console.log(`${tried} tried, ${found} found: ${Math.round((1_000 * found) / tried) / 10} %`);
}

function faultsOf(folder, name, spared) {
  return readdirSync(join(root, folder, "src"), { recursive: true, encoding: "utf8" })
    .map((path) => join(folder, "src", path))
    .filter((path) => path.endsWith(".rs") && !/tests?(\.rs|\/)/.test(path) && !spared.test(path))
    .sort()
    .flatMap((path) => crateFaultsIn(path, readFileSync(join(root, path), "utf8")))
    .map((fault) => ({ ...fault, package: name }));
}

/** Runs the crate's tests, the quick ones first; returns a failed test, or null. */
function tested(copy, name) {
  for (const [which, words] of [
    ["--lib", ["--skip", SLOW_TEST]],
    ["--lib", [SLOW_TEST]],
    ["--test=*", []],
  ]) {
    const said = testedIn(copy, name, which, words);
    if (said.finding !== null) return said;
  }
  return { compiles: true, finding: null };
}

function testedIn(copy, name, which, words) {
  const test = ["test", "--locked", "--quiet", which, "-p", name];
  if (cargo(copy, [...test, "--no-run"]).status !== 0) return { compiles: false, finding: "does not compile" };
  const { pid, status, stdout } = cargo(copy, [...test, "--", ...words], LIMIT_MS);
  if (status === null) {
    endGroup(pid);
    return { compiles: true, finding: "its tests do not come to an end" };
  }
  return { compiles: true, finding: status === 0 ? null : (/^ {4}([\w:]+)$/m.exec(stdout)?.[1] ?? "red") };
}

function cargo(copy, words, timeout) {
  return spawnSync("cargo", words, {
    cwd: copy,
    detached: true,
    env: {
      ...process.env,
      CARGO_TARGET_DIR: join(root, "target", "mutants"),
      // Without debug information: the name of a failed test is enough.
      CARGO_PROFILE_DEV_DEBUG: "0",
      RUSTFLAGS: "--cap-lints warn",
      // One fault must not be detected by what another one left behind.
      PROPTEST_DISABLE_FAILURE_PERSISTENCE: "1",
    },
    encoding: "utf8",
    timeout,
    killSignal: "SIGKILL",
    maxBuffer: OUTPUT_LIMIT_BYTES,
  });
}

/** Ends the tests that the killed cargo had started, which might run forever. */
function endGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
