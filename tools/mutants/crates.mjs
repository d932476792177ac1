// `npm run mutants -- crates [K/N]`: cargo-mutants over the crates in which bytes become frames and commands: every Nth
// of its mutants from the Kth on. They are made in a copy of the workspace, whose build is kept.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "../../scripts/build.mjs";

const VERSION = "27.1.0";
/** Some 60 mutants. */
const STANDARD_SHARD = "0/110";
const PACKAGES = ["headgate-media", "headgate-rtmp", "headgate-whip"];
/** Bodies of the fuzzer, and ciphers that only handshakes with other programs test. */
const CIPHERS = ["dtls", "srtp", "record_nonce", "p224"].map((name) => `**/transport/${name}*`);
const SPARED = ["**/fuzz.rs", "**/fuzz/**", ...CIPHERS];
const FOLDER = join(root, "target", "mutants");
const COPIED = ["Cargo.toml", "Cargo.lock", "crates"];

/** Prints each mutant that no test detects; returns the exit code, 2 if there is one. */
export function tryCrates([shard = STANDARD_SHARD]) {
  const [tool, copy] = [join(FOLDER, "tools"), join(FOLDER, "workspace")];
  const program = join(tool, "bin", "cargo-mutants");
  if (!existsSync(program))
    run("cargo", ["install", "cargo-mutants", "--version", VERSION, "--locked", "--root", tool]);
  rmSync(copy, { recursive: true, force: true });
  for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true, preserveTimestamps: true });
  const words = [
    ...["mutants", "--in-place", "--dir", copy, "--output", FOLDER],
    ...["--shard", shard, "--sharding", "round-robin", "--cap-lints", "true"],
    ...PACKAGES.flatMap((name) => ["--package", name]),
    ...SPARED.flatMap((glob) => ["--exclude", glob]),
  ];
  const env = {
    ...process.env,
    CARGO_TARGET_DIR: join(FOLDER, "target"),
    // Without debug information: the name of a failed test is enough.
    CARGO_PROFILE_DEV_DEBUG: "0",
    // One mutant must not be detected by what another one left behind.
    PROPTEST_DISABLE_FAILURE_PERSISTENCE: "1",
  };
  return spawnSync(program, words, { env, stdio: "inherit" }).status ?? 1;
}
