// A Python environment of this checkout with the pinned packages that tests use as independent peers. It is created
// once in .build/python, and again if the requirements or the Python change. The machine's own Python is not changed.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { BuildError, hashOf, root, run, step } from "./build.mjs";
import { withLock } from "./lock.mjs";

const REQUIREMENTS = "test/fixtures/python-requirements.txt";
/** Required by aiortc 1.16 and PyAV 18; Debian 12 has 3.11. */
const PYTHON_AT_LEAST = [3, 11];

/** Provides the environment.
 *  @returns {string} path of its `python`
 *  @throws {BuildError} if Python is missing or too old, or a package cannot be downloaded */
export function providePython() {
  const folder = join(root, ".build", "python");
  const python = join(folder, "bin", "python");
  withLock(join(root, ".build", "python-lock"), () => {
    const inputs = `${pythonVersion()} ${hashOf([REQUIREMENTS])}`;
    step("Python packages", join(folder, "headgate-stamp"), inputs, () => {
      rmSync(folder, { recursive: true, force: true });
      run("python3", ["-m", "venv", folder]);
      installWheels(python, REQUIREMENTS);
      run(python, ["-m", "pip", "--disable-pip-version-check", "check"]);
    });
  });
  return python;
}

/** Installs what a file lists: wheels only, and nothing that is not listed, so that only reviewed packages are
 *  installed.
 *  @param {string} python path of a Python with pip
 *  @param {string} requirements path of the file
 *  @param {readonly string[]} more arguments for pip, such as the platform */
export function installWheels(python, requirements, more = []) {
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  run(python, [...pip, "--no-deps", "--only-binary", ":all:", ...more, "-r", requirements]);
}

/** The version of the `python3` on the path, such as `3.11.2`. */
function pythonVersion() {
  const code = "import ensurepip, venv, platform; print(platform.python_version())";
  const said = spawnSync("python3", ["-c", code], { encoding: "utf8" });
  const version = /^(\d+)\.(\d+)\.\d+/.exec(said.stdout ?? "");
  if (!version) throw new BuildError("Python 3 with venv is missing; on Debian: apt-get install python3-venv");
  const [major, minor] = [Number(version[1]), Number(version[2])];
  const [leastMajor, leastMinor] = PYTHON_AT_LEAST;
  if (major < leastMajor || (major === leastMajor && minor < leastMinor)) {
    throw new BuildError(`Python ${PYTHON_AT_LEAST.join(".")} or newer is needed, this is ${version[0]}`);
  }
  return version[0];
}
