// The commit this Headgate was built from: in package.json for a package, in .git for a clone.
import { readFileSync } from "node:fs";

/** The installation's folder, both for the sources (`ts/cli`) and for the build (`dist/cli`). */
const ROOT = new URL("../../", import.meta.url);
const COMMIT = /^[0-9a-f]{40}$/;
/** As git abbreviates it by default in large repositories. */
const SHOWN_CHARACTERS = 12;

/** `0.1.0 (commit 0123456789ab)`; only the version where the commit is unknown, as in a container image. */
export function versionWithCommit(version: string, root = ROOT): string {
  const commit = packagedCommit(root) ?? checkedOutCommit(root);
  return commit === null ? version : `${version} (commit ${commit.slice(0, SHOWN_CHARACTERS)})`;
}

function packagedCommit(root: URL): string | null {
  const { gitHead } = JSON.parse(textOf(root, "package.json") ?? "{}") as { readonly gitHead?: unknown };
  return typeof gitHead === "string" && COMMIT.test(gitHead) ? gitHead : null;
}

/** gitrepository-layout(5): HEAD names a commit or a branch, and branches are files or lines of packed-refs. */
function checkedOutCommit(root: URL): string | null {
  const head = textOf(root, ".git/HEAD")?.trim() ?? "";
  if (COMMIT.test(head)) return head;
  const branch = /^ref: (refs\/heads\/[\w./-]+)$/.exec(head)?.[1];
  if (branch === undefined || branch.includes("..")) return null;
  const loose = textOf(root, `.git/${branch}`)?.trim() ?? "";
  if (COMMIT.test(loose)) return loose;
  const packed = (textOf(root, ".git/packed-refs") ?? "").split("\n").find((line) => line.endsWith(` ${branch}`));
  const commit = packed?.split(" ")[0] ?? "";
  return COMMIT.test(commit) ? commit : null;
}

function textOf(root: URL, path: string): string | null {
  try {
    return readFileSync(new URL(path, root), "utf8");
  } catch {
    return null;
  }
}
