// `npm run release [-- --targets linux-x64-gnu,… | own] [--built] [--try]`: makes everything that is published, in
// dist/release: the service `headgate`, the clients `headgate-client` and `headgate-webcaster`, the media core for each
// platform, the bill of materials, licences, changes, and SHA256SUMS over all of it. The media core is cross-built for
// every platform; with `--built` the one for this machine is what `npm start` built (for tests: it needs this machine's
// C library). `--try` installs and runs the packages. Exits with 1 if one of them must not be published.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { BuildError, build, root, run } from "./build.mjs";
import { pack, packClient } from "./client-package.mjs";
import { faultsOfAddon } from "./release/addon.mjs";
import { contentsOf, faultsOfContents } from "./release/contents.mjs";
import { headOf } from "./release/head.mjs";
import { makePlatform, makeService } from "./release/packages.mjs";
import { ownTarget, packageOf, targetsOf } from "./release/targets.mjs";
import { tryRelease } from "./release/try.mjs";
import { crossBuild } from "./release/zig.mjs";
import { packWebcaster } from "./webcaster-package.mjs";

/** Makes a release in `into` and returns its packages: names, folders, archives.
 *  @param {{ into?: string, targets?: string, built?: boolean }} options
 *  @throws {BuildError} if something does not build, or must not be published */
export async function release({ into = join(root, "dist", "release"), targets, built = false } = {}) {
  build();
  run(process.execPath, [join("scripts", "licences.mjs")]);
  const commit = headOf(root);
  const staging = mkdtempSync(join(tmpdir(), "headgate-release-"));
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const packages = [];
  const faults = [];
  const add = (name, make, excepted) => {
    const folder = join(staging, name);
    make(folder);
    faults.push(...faultsOfContents(folder, excepted).map((fault) => `${name}/${fault}`));
    packages.push({ name, contents: contentsOf(folder), archive: pack([folder], into)[0] });
  };
  add("headgate", (folder) => makeService(folder, commit));
  for (const target of targetsOf(targets)) {
    const isOwn = built && target.name === ownTarget().name;
    const library = isOwn ? join(root, "ts", "native", "headgate.node") : crossBuild(target);
    const name = packageOf(target);
    faults.push(...faultsOfAddon(library, target, isOwn).map((fault) => `${name}: the addon ${fault}`));
    add(name, (folder) => makePlatform(folder, target, library, commit), isOwn ? ["headgate.node"] : []);
  }
  for (const [name, make] of [
    ["headgate-client", packClient],
    ["headgate-webcaster", packWebcaster],
  ]) {
    const made = await make(staging);
    const folder = join(staging, name);
    copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
    rmSync(made);
    add(name, () => {});
  }
  for (const name of ["licences.txt", "sbom.cdx.json"]) copyFileSync(join(root, "dist", name), join(into, name));
  for (const name of ["CHANGELOG.md", "LICENSE"]) copyFileSync(join(root, name), join(into, name));
  rmSync(staging, { recursive: true });
  sumUp(into);
  if (faults.length > 0) throw new BuildError(`this must not be published:\n  ${faults.join("\n  ")}`);
  return packages;
}

/** SHA256SUMS in the format of sha256sum(1). */
function sumUp(folder) {
  const lines = readdirSync(folder)
    .sort()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}  ${name}\n`,
    );
  writeFileSync(join(folder, "SHA256SUMS"), lines.join(""));
}

/** Prints folders with their total sizes, and the files at the top. */
function print({ archive, contents }) {
  const sizes = new Map();
  for (const { name, bytes } of contents) {
    const top = name
      .split("/")
      .slice(0, name.startsWith("dist/") ? 2 : 1)
      .join("/");
    const [files, sum] = sizes.get(top) ?? [0, 0];
    sizes.set(top, [files + 1, sum + bytes]);
  }
  console.log(`${archive.split("/").at(-1)}: ${kilobytes(statSync(archive).size)} packed`);
  for (const [top, [files, bytes]] of sizes)
    console.log(`  ${kilobytes(bytes).padStart(10)}  ${top}${files > 1 ? ` (${files} files)` : ""}`);
}

const kilobytes = (bytes) => `${Math.ceil(bytes / 1_000).toLocaleString("en")} kB`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { targets: { type: "string" }, built: { type: "boolean" }, try: { type: "boolean", default: false } };
  try {
    const { values } = parseArgs({ options });
    const packages = await release(values);
    packages.forEach(print);
    if (values.try) await tryRelease(join(root, "dist", "release"), targetsOf(values.targets));
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`headgate: ${error.message}`);
    process.exitCode = 1;
  }
}
