// cargo-zigbuild and zig, pinned, in .build/zig, and Rust's standard library for a target. Made once, and again if the
// pins change. The machine's own Python is not changed.
import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { delimiter, join } from "node:path";
import { BuildError, hashOf, root, run, step } from "../../scripts/build.mjs";
import { pathWithoutShims, realCmake } from "../../scripts/build-tools.mjs";
import { withLock } from "../../scripts/lock.mjs";
import { providePrograms, toBuild } from "../../scripts/programs.mjs";
import { installWheels } from "../../scripts/python.mjs";
import { GLIBC } from "./targets.mjs";

const REQUIREMENTS = "tools/release/zig-requirements.txt";
const FOLDER = join(root, ".build", "zig");

/** Builds the addon of a target, and returns the path of the library.
 *  @param {import("./targets.mjs").Target} target
 *  @throws {BuildError} if a tool is missing, or the addon does not build */
export function crossBuild({ name, triple, libc }) {
  if (realCmake() === null) throw new BuildError(providePrograms(toBuild) ?? "cmake is missing");
  provideZig();
  provideRustLibrary(triple);
  // Remapped, so that no text in the library names a folder of this machine.
  const folders = [
    [process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "/cargo"],
    [root, "/headgate"],
    [process.env.RUSTUP_HOME ?? join(homedir(), ".rustup"), "/rustup"],
  ];
  const flags = folders.map(([from, to]) => `--remap-path-prefix=${from}=${to}`);
  // A shared library uses the C library of the program that loads it.
  if (libc === "musl") flags.push("-C target-feature=-crt-static");
  const cache = join(FOLDER, "cache");
  const env = {
    ...process.env,
    PATH: [join(FOLDER, "bin"), pathWithoutShims(join(root, ".build", "tools"))].join(delimiter),
    // What this machine prefers, which cargo-zigbuild would not replace.
    CMAKE_GENERATOR: undefined,
    CMAKE_TOOLCHAIN_FILE: undefined,
    RUSTFLAGS: flags.join(" "),
    CFLAGS: folders
      .slice(0, 2)
      .map(([from, to]) => `-ffile-prefix-map=${from}=${to}`)
      .join(" "),
    ZIG_GLOBAL_CACHE_DIR: cache,
    ZIG_LOCAL_CACHE_DIR: cache,
    CMAKE_BUILD_PARALLEL_LEVEL: String(availableParallelism()),
    CARGO_ZIGBUILD_CACHE_DIR: join(FOLDER, "wrappers"),
  };
  console.error(`headgate: building the media core for ${name} …`);
  const asked = libc === "glibc" ? `${triple}.${GLIBC}` : triple;
  const words = ["zigbuild", "--release", "--locked", "-p", "headgate-bridge", "--target", asked];
  // zig names its own folders relative to the working directory if they are below it; nothing else runs in this one.
  const cwd = join(root, "crates", "bridge");
  const { status, error } = spawnSync("cargo", words, { cwd, env, stdio: ["ignore", 2, 2] });
  if (error) throw new BuildError(`cargo cannot be started: ${error.message}`);
  if (status !== 0) throw new BuildError(`the media core does not build for ${name}`);
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), triple, "release", "libheadgate_bridge.so");
}

function provideZig() {
  const python = join(FOLDER, "bin", "python");
  withLock(join(root, ".build", "zig-lock"), () => {
    step("cargo-zigbuild and zig", join(FOLDER, "stamp"), hashOf([REQUIREMENTS]), () => {
      rmSync(FOLDER, { recursive: true, force: true });
      run("python3", ["-m", "venv", FOLDER]);
      installWheels(python, REQUIREMENTS);
    });
  });
}

/** rustup installs the libraries of other targets beside that of this machine. */
function provideRustLibrary(triple) {
  const asked = spawnSync("rustc", ["--print", "target-libdir", "--target", triple], { encoding: "utf8" });
  if (asked.status === 0 && existsSync(asked.stdout.trim())) return;
  run("rustup", ["target", "add", triple]);
}
