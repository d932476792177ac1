// Packages from npm's registry that are used as files, each pinned to a version and a hash.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BuildError, run } from "./build.mjs";

/** Packed and unpacked, not installed: nothing of the package runs, and its content is verified. Its files are then in
 *  `folder`/package.
 *  @param {string} specifier `name@version`
 *  @param {string} integrity as lock files state it
 *  @param {string} folder recreated
 *  @throws {BuildError} if it cannot be downloaded, or does not match */
export function fetchPinned(specifier, integrity, folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  run("npm", ["pack", specifier, "--silent", "--loglevel=error", "--pack-destination", folder]);
  const archive = join(folder, readdirSync(folder)[0]);
  const [algorithm, wanted] = integrity.split(/-(.*)/s);
  const came = createHash(algorithm).update(readFileSync(archive)).digest("base64");
  if (came !== wanted) throw new BuildError(`${specifier} is not what was pinned: ${algorithm}-${came}`);
  run("tar", ["--extract", "--gzip", "--no-same-owner", "--file", archive, "--directory", folder]);
  rmSync(archive);
}
