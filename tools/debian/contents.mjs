// Which files of a folder go into a package: those that a built Headgate runs with, whether the folder is a checkout in
// which everything is built, or an installation that contains nothing else.
import { closeSync, cpSync, existsSync, openSync, readdirSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { BuildError } from "../../scripts/build.mjs";
import { manifestOf } from "../release/manifest.mjs";

/** Required files. */
const NEEDED = ["package.json", "deploy/headgate.mjs", "dist/cli/main.js", "dist/libraries/libsql.node"];
const SHIPPED = ["LICENSE", "deploy/headgate.mjs", "dist", "docs", "ts/native"];
/** e_machine of ELF (its chapter 1, ELF header) → Debian's name of the architecture. */
export const ARCHITECTURES = { 62: "amd64", 183: "arm64" };
const MACHINE_AT = 18;
/** Required by Node itself. */
const OLDEST_GLIBC_MINOR = 28;

/** Copies them into `to`.
 *  @throws {BuildError} if the folder is not built */
export function copyContents(folder, to) {
  const missing = NEEDED.filter((path) => !existsSync(join(folder, path)));
  if (missing.length > 0) throw new BuildError(`${folder} is not a built Headgate: ${missing.join(", ")} missing`);
  const manifest = manifestOf(folder);
  if (manifest.libc?.includes("musl")) throw new BuildError(`${folder} is for musl, which Debian does not use`);
  const released = resolve(folder, "dist", "release");
  for (const path of SHIPPED) {
    const from = resolve(folder, path);
    const filter = (source) => source !== released;
    if (existsSync(from)) cpSync(from, join(to, path), { recursive: true, dereference: true, filter });
  }
  writeFileSync(join(to, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** The oldest glibc that the addons in a folder accept, such as `2.28`, by the versions of the symbols that they
 *  import. */
export function glibcOf(folder) {
  const minors = addonsOf(folder).flatMap((path) =>
    [...readFileSync(path, "latin1").matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor)),
  );
  return `2.${Math.max(OLDEST_GLIBC_MINOR, ...minors)}`;
}

/** Debian's name of the architecture of the addons in a folder.
 *  @throws {BuildError} if there is no addon, or they differ */
export function architectureOf(folder) {
  const found = new Set(addonsOf(folder).map(machineOf));
  const [architecture] = found;
  if (found.size !== 1 || architecture === undefined) {
    throw new BuildError(`the addons are for ${[...found].join(" and ") || "no architecture"}: a package is for one`);
  }
  return architecture;
}

function addonsOf(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".node"));
  return names.map((name) => join(folder, name));
}

/** Debian's name of the architecture that a program is for; undefined if it is none for Linux, or for another one. */
export function machineOf(path) {
  const header = Buffer.alloc(MACHINE_AT + 2);
  const file = openSync(path, "r");
  try {
    const isElf = readSync(file, header) === header.length && header.toString("latin1", 1, 4) === "ELF";
    return isElf ? ARCHITECTURES[header.readUInt16LE(MACHINE_AT)] : undefined;
  } finally {
    closeSync(file);
  }
}
