// `npm run fuzz [-- TARGET] [SECONDS]`: runs the fuzz targets of crates/fuzz one after another, each bounded in time.
// A crash is written to crates/fuzz/artifacts and ends the run with 1.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./build.mjs";

const SECONDS_EACH = 60;
/** More than one message of the largest size we take; found crashes stay small enough to read. */
const INPUT_LIMIT_BYTES = 65_536;
const INSTALL = "cargo install --locked cargo-fuzz";

const folder = join(root, "crates", "fuzz");
const manifest = join(folder, "Cargo.toml");
const args = process.argv.slice(2);
const seconds = Number(args.find((arg) => /^\d+$/.test(arg)) ?? SECONDS_EACH);
const wanted = args.filter((arg) => !/^\d+$/.test(arg));
const targets = existsSync(manifest) ? targetsOf(readFileSync(manifest, "utf8")) : [];

if (targets.length === 0) end("crates/fuzz has no target yet");
const unknown = wanted.filter((name) => !targets.includes(name));
if (unknown.length > 0) end(`no target ${unknown.join(", ")}; there are ${targets.join(", ")}`);
if (spawnSync("cargo", ["fuzz", "--version"], { stdio: "ignore" }).status !== 0) {
  end(`cargo-fuzz is missing: ${INSTALL}`);
}

const crashed = [];
for (const target of wanted.length > 0 ? wanted : targets) {
  console.error(`headgate: fuzzing ${target} for ${seconds} s`);
  // No sanitizer: those need a nightly compiler, and the parsers are safe Rust; panics and memory are what we look for.
  const bounds = [`-max_total_time=${seconds}`, `-max_len=${INPUT_LIMIT_BYTES}`];
  const command = ["fuzz", "run", "--fuzz-dir", folder, "--sanitizer", "none", target, "--", ...bounds];
  if (spawnSync("cargo", command, { cwd: root, stdio: "inherit" }).status !== 0) crashed.push(target);
}
if (crashed.length > 0) end(`failed: ${crashed.join(", ")}; inputs are in crates/fuzz/artifacts`);

/** The names of the [[bin]] tables. */
function targetsOf(toml) {
  const tables = toml.split(/^\[/m).filter((table) => table.startsWith("[bin]]"));
  return tables.flatMap((table) => /^name\s*=\s*"([^"]+)"/m.exec(table)?.[1] ?? []);
}

function end(message) {
  console.error(`headgate: ${message}`);
  process.exit(1);
}
