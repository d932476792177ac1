// The commit that a release is made from.
import { spawnSync } from "node:child_process";

/** Null outside of a clone. Warns on standard error if files differ from the commit.
 *  @param {string} root
 *  @returns {string | null} */
export function headOf(root) {
  const git = (...words) => spawnSync("git", words, { cwd: root, encoding: "utf8" });
  const { status, stdout } = git("rev-parse", "--verify", "--quiet", "HEAD");
  if (status !== 0) return null;
  if (git("status", "--porcelain").stdout.trim() !== "")
    console.error("headgate: the release contains uncommitted changes");
  return stdout.trim();
}
