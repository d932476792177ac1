// `npm run fuzz [-- TARGET...] [SECONDS]`: runs the fuzz targets of crates/fuzz one after another, each for a limited
// time. A crash is written to crates/fuzz/artifacts and ends the run with 1; once fixed, the input belongs in
// crates/fuzz/corpus. Needs the pinned stable Rust and a C++ compiler (libFuzzer is C++), but not cargo-fuzz, whose
// flags are given below.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/build.mjs";

const SECONDS_EACH = 60;
/** More than one message of the largest accepted size; crashing inputs stay small enough to read. */
const INPUT_LIMIT_BYTES = 65_536;
/** An input that takes more CPU time counts as a hang (reliability R14). libFuzzer measures wall-clock time: what it
 *  reports as slow is measured again by CPU time, and it gives up only on what takes `WALL_LIMIT_S`. */
const INPUT_LIMIT_S = 1;
const WALL_LIMIT_S = 30;
/** libFuzzer's exit code for an input that took too long. */
const TOO_SLOW = 70;
/** libFuzzer itself and its corpus stay below a third of this. */
const MEMORY_LIMIT_MB = 256;
/**
 * Coverage only, no sanitizers: those need a nightly compiler, and the parsers are safe Rust; we look for panics,
 * hangs and memory use.
 */
const COVERAGE = [
  "--cfg fuzzing",
  "-Cpasses=sancov-module",
  "-Cllvm-args=-sanitizer-coverage-level=4",
  "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
  "-Cllvm-args=-sanitizer-coverage-pc-table",
  "-Cllvm-args=-sanitizer-coverage-trace-compares",
].join(" ");

const folder = join(root, "crates", "fuzz");
const manifest = join(folder, "Cargo.toml");
const args = process.argv.slice(2);
const seconds = Number(args.find((arg) => /^\d+$/.test(arg)) ?? SECONDS_EACH);
const wanted = args.filter((arg) => !/^\d+$/.test(arg));
const targets = existsSync(manifest) ? targetsOf(readFileSync(manifest, "utf8")) : [];

if (targets.length === 0) end("crates/fuzz has no target yet");
// libFuzzer takes 0 as unlimited.
if (seconds === 0) end("at least 1 second");
const unknown = wanted.filter((name) => !targets.includes(name));
if (unknown.length > 0) end(`no target ${unknown.join(", ")}; there are ${targets.join(", ")}`);

const host = /^host: (.+)$/m.exec(spawnSync("rustc", ["-vV"], { encoding: "utf8" }).stdout ?? "")?.[1];
if (host === undefined) end("rustc is missing: https://rustup.rs");
const selected = wanted.length > 0 ? wanted : targets;
buildTargets();
const crashed = selected.filter((target) => !run(target));
if (crashed.length > 0) end(`failed: ${crashed.join(", ")}; inputs are in crates/fuzz/artifacts`);

/** With an explicit target, build scripts and macros are built without the flags. */
function buildTargets() {
  const bins = selected.flatMap((target) => ["--bin", target]);
  const command = ["build", "--release", "--manifest-path", manifest, "--target-dir", join(folder, "target")];
  const env = { ...process.env, RUSTFLAGS: COVERAGE };
  const built = spawnSync("cargo", [...command, "--target", host, ...bins], { cwd: root, env, stdio: "inherit" });
  if (built.status !== 0) end("the fuzz targets do not build");
}

/** Whether it ended without a finding. New corpus entries stay in the target folder; the corpus in git is only read. */
function run(target) {
  console.error(`headgate: fuzzing ${target} for ${seconds} s`);
  const [learned, seeds, artifacts] = ["target/learned", "corpus", "artifacts"].map((name) => {
    const path = join(folder, name, target);
    mkdirSync(path, { recursive: true });
    return path;
  });
  const bounds = [
    `-max_len=${INPUT_LIMIT_BYTES}`,
    `-timeout=${WALL_LIMIT_S}`,
    `-report_slow_units=${INPUT_LIMIT_S}`,
    `-rss_limit_mb=${MEMORY_LIMIT_MB}`,
    `-artifact_prefix=${artifacts}/`,
    // Prints findings and final figures, not every step.
    "-verbosity=0",
    "-print_final_stats=1",
  ];
  const program = join(folder, "target", host, "release", target);
  const until = Date.now() + seconds * 1_000;
  for (let left = seconds; left > 0; left = Math.round((until - Date.now()) / 1_000)) {
    const time = `-max_total_time=${left}`;
    const { status } = spawnSync(program, [time, ...bounds, learned, seeds], { cwd: folder, stdio: "inherit" });
    if ((status !== 0 && status !== TOO_SLOW) || hangs(program, artifacts)) return false;
    if (status === 0) return true;
  }
  return true;
}

/** Whether an input that was reported as slow really is, alone and by CPU time. The others are removed. */
function hangs(program, artifacts) {
  const slow = readdirSync(artifacts).filter((name) => /^(?:timeout|slow-unit)-/.test(name));
  return slow.some((name) => {
    const input = join(artifacts, name);
    const alone = `ulimit -t ${INPUT_LIMIT_S} && exec "$0" -timeout=0 "$1"`;
    const { status } = spawnSync("sh", ["-c", alone, program, input], { cwd: folder, stdio: "ignore" });
    if (status === 0) rmSync(input);
    return status !== 0;
  });
}

/** The names of the [[bin]] tables. */
function targetsOf(toml) {
  const tables = toml.split(/^\[/m).filter((table) => table.startsWith("[bin]]"));
  return tables.flatMap((table) => /^name\s*=\s*"([^"]+)"/m.exec(table)?.[1] ?? []);
}

function end(message) {
  console.error(`headgate: ${message}`);
  process.exit(1);
}
