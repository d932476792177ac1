// Builds a commit of this repository in a separate folder below `.build`. Node packages are shared if the
// lock file is the same.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { BuildError, root, run } from "../../scripts/build.mjs";

/** @returns {string} the folder
 *  @throws {BuildError} if the commit does not exist, or does not build */
export function checkoutOf(commit) {
  const { status, stdout } = git("rev-parse", "--verify", "--quiet", `${commit}^{commit}`);
  if (status !== 0) throw new BuildError(`there is no commit ${commit} here${isShallow() ? SHALLOW : ""}`);
  const hash = stdout.trim();
  const folder = join(root, ".build", "upgrade", hash.slice(0, 12));
  if (!existsSync(join(folder, "package.json"))) extract(hash, folder);
  const isSame = [".npmrc", "package-lock.json"].every((name) => textOf(folder, name) === textOf(root, name));
  if (isSame && !existsSync(join(folder, "node_modules")))
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const program = 'import("./scripts/build.mjs").then(({ build }) => build())';
  // Not shared: cargo uses the same name for the addon of every checkout, and would confuse them.
  const env = { ...process.env, CARGO_TARGET_DIR: join(folder, "target") };
  const built = spawnSync(process.execPath, ["--eval", program], { cwd: folder, env, stdio: ["ignore", 2, 2] });
  if (built.status !== 0) throw new BuildError(`${commit} does not build in ${folder}`);
  return folder;
}

const SHALLOW = ": this is a shallow clone, `git fetch --unshallow` gets what came before";
const isShallow = () => git("rev-parse", "--is-shallow-repository").stdout.trim() === "true";

/** The files of a commit, without its history. */
function extract(hash, folder) {
  mkdirSync(folder, { recursive: true });
  const archive = join(folder, "..", `${hash}.tar`);
  run("git", ["archive", "--output", archive, hash]);
  run("tar", ["-xf", archive, "-C", folder]);
  run("rm", [archive]);
}

function git(...words) {
  return spawnSync("git", words, { cwd: root, encoding: "utf8" });
}

const textOf = (folder, name) => readFileSync(join(folder, name), "utf8");
