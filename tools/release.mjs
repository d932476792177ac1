// `npm run release [-- --targets linux-x64-gnu,… | own] [--built] [--try]`: makes everything that is published, in
// dist/release: the service `headgate` for each platform, with everything that it needs, the clients `headgate-client` and
// `headgate-webcaster`, the bill of materials, licences, changes, and SHA256SUMS over all of it. Exits with 1 if one of
// them must not be published, and with 2 if the command line is not understood.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { BuildError, build, root, run } from "../scripts/build.mjs";
import { pack, packClient } from "../scripts/client-package.mjs";
import { packWebcaster } from "../scripts/webcaster-package.mjs";
import { faultsOfAddon } from "./release/addon.mjs";
import { provideAddons } from "./release/addons.mjs";
import { contentsOf, faultsOfContents } from "./release/contents.mjs";
import { headOf } from "./release/head.mjs";
import { CORE, makeService } from "./release/packages.mjs";
import { archiveOf, ownTarget, TARGETS, targetsOf } from "./release/targets.mjs";
import { tryRelease } from "./release/try.mjs";
import { crossBuild } from "./release/zig.mjs";

/** @typedef {{
 *    readonly name: string;
 *    readonly contents: readonly { readonly name: string; readonly bytes: number }[];
 *    readonly archive: string;
 *  }} ReleasedPackage */

const HELP = `npm run release [-- OPTIONS]

Makes what is published, in dist/release: the service for each platform with everything that it needs, the clients, the
bill of materials, licences, changes, and SHA256SUMS.

  --targets NAMES  only these platforms, separated by commas: ${TARGETS.map(({ name }) => name).join(", ")};
                   or own, that of this machine
  --built          the media core for this machine is what npm start built; it then needs this machine's C library
  --try            installs the packages in minimal root file systems and runs them there, as root; ${TARGETS.at(1)?.cpu} under qemu
  --help           this

Needs what npm start needs (Rust, a C compiler, make, cmake), and for the other platforms rustup, and Python 3.11 or newer with
venv, which installs zig and cargo-zigbuild below .build.`;

/** Makes a release in `into` and returns its packages: names, folders, archives.
 *  @param {{ into?: string, targets?: string, built?: boolean }} options
 *  @throws {BuildError} if something does not build, or must not be published */
export async function release({ into = join(root, "dist", "release"), targets, built = false } = {}) {
  const platforms = targetsOf(targets);
  build();
  run(process.execPath, [join("tools", "licences.mjs")]);
  const commit = headOf(root);
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const staging = mkdtempSync(join(tmpdir(), "headgate-release-"));
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  const packages = [];
  const faults = [];
  const add = async (name, folder, archive, excepted) => {
    faults.push(...(await faultsOfContents(folder, excepted)).map((fault) => `${name}/${fault}`));
    const [packed] = pack([folder], into);
    renameSync(packed, join(into, archive));
    packages.push({ name, contents: contentsOf(folder), archive: join(into, archive) });
  };
  for (const target of platforms) {
    const isOwn = built && target.name === ownTarget().name;
    const core = isOwn ? join(root, "ts", "native", "headgate.node") : crossBuild(target);
    const name = `headgate for ${target.name}`;
    faults.push(...faultsOfAddon(core, target, isOwn).map((fault) => `${name}: the addon ${fault}`));
    const folder = join(staging, target.name);
    makeService(folder, { target, core, addons: provideAddons(target), commit });
    await add(name, folder, archiveOf(target, version), isOwn ? [CORE] : []);
  }
  for (const [name, make] of [
    ["headgate-client", packClient],
    ["headgate-webcaster", packWebcaster],
  ]) {
    const made = await make(staging);
    const folder = join(staging, name);
    copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
    rmSync(made);
    await add(name, folder, basename(made));
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
  try {
    await main();
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    console.error(`headgate: ${error.message}`);
    process.exitCode = 1;
  }
}

async function main() {
  const options = {
    targets: { type: "string" },
    built: { type: "boolean" },
    try: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  };
  let values;
  try {
    ({ values } = parseArgs({ options }));
    targetsOf(values.targets);
  } catch (error) {
    console.error(`headgate: ${error.message}\n\n${HELP}`);
    process.exitCode = 2;
    return;
  }
  if (values.help) return console.log(HELP);
  const packages = await release(values);
  packages.forEach(print);
  if (values.try) await tryRelease(packages, targetsOf(values.targets));
}
