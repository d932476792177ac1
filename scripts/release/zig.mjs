// cargo-zigbuild and zig, pinned, in .build/zig, and Rust's own library for a target. Made once, and anew when the pins change.
// Nothing of the machine's Python is touched.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { BuildError, hashOf, root, run, step } from "../build.mjs";
import { withLock } from "../lock.mjs";
import { GLIBC } from "./targets.mjs";

const REQUIREMENTS = "scripts/release/zig-requirements.txt";
const FOLDER = join(root, ".build", "zig");

/** Builds the addon of a target, and returns the path of the library.
 *  @param {import("./targets.mjs").Target} target
 *  @throws {BuildError} when a tool is missing, or the addon does not build */
export function crossBuild({ name, triple, libc }) {
  provideZig();
  provideRustLibrary(triple);
  // Named here, so that no text in the library names a folder of this machine.
  const folders = [
    [process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "/cargo"],
    [process.env.RUSTUP_HOME ?? join(homedir(), ".rustup"), "/rustup"],
    [root, "/headgate"],
  ];
  const flags = folders.map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
  // A library that is loaded takes the C library of the program that loads it.
  if (libc === "musl") flags.push("-C target-feature=-crt-static");
  const cache = join(FOLDER, "cache");
  const env = {
    ...process.env,
    PATH: `${join(FOLDER, "tools", "bin")}${delimiter}${process.env.PATH}`,
    RUSTFLAGS: flags.join(" "),
    CFLAGS: folders.map(([from, to]) => `-ffile-prefix-map=${from}=${to}`).join(" "),
    ZIG_GLOBAL_CACHE_DIR: cache,
    ZIG_LOCAL_CACHE_DIR: cache,
    CARGO_ZIGBUILD_CACHE_DIR: join(FOLDER, "wrappers"),
  };
  console.error(`headgate: building the media core for ${name} …`);
  const asked = libc === "glibc" ? `${triple}.${GLIBC}` : triple;
  const words = ["zigbuild", "--release", "--locked", "-p", "headgate-bridge", "--target", asked];
  const { status, error } = spawnSync("cargo", words, { cwd: root, env, stdio: ["ignore", 2, 2] });
  if (error) throw new BuildError(`cargo cannot be started: ${error.message}`);
  if (status !== 0) throw new BuildError(`the media core does not build for ${name}`);
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), triple, "release", "libheadgate_bridge.so");
}

function provideZig() {
  const tools = join(FOLDER, "tools");
  const python = join(tools, "bin", "python");
  withLock(FOLDER, () => {
    step("cargo-zigbuild and zig", join(FOLDER, "stamp"), hashOf([REQUIREMENTS]), () => {
      rmSync(tools, { recursive: true, force: true });
      mkdirSync(FOLDER, { recursive: true });
      run("python3", ["-m", "venv", tools]);
      const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
      run(python, [...pip, "--no-deps", "--only-binary", ":all:", "-r", REQUIREMENTS]);
    });
  });
}

/** Beside the one for this machine, rustup keeps those of other targets. */
function provideRustLibrary(triple) {
  const asked = spawnSync("rustc", ["--print", "target-libdir", "--target", triple], { encoding: "utf8" });
  if (asked.status === 0 && existsSync(asked.stdout.trim())) return;
  run("rustup", ["target", "add", triple]);
}
