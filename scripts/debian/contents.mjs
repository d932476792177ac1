// What of a folder goes into a package: the files that a built Headgate runs with, whether the folder is a checkout in which
// everything is built or an installation that holds nothing else.
import { closeSync, cpSync, existsSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join, resolve } from "node:path";
import { BuildError } from "../build.mjs";
import { INSTALLED_LIBRARIES } from "../installed-libraries.mjs";
import { withDependencies } from "../supply/components.mjs";

/** Without one of these nothing runs. */
const NEEDED = ["package.json", "deploy/headgate.mjs", "dist/cli/main.js", "node_modules"];
const SHIPPED = ["package.json", "LICENSE", "deploy/headgate.mjs", "dist", "docs", "ts/native"];
/** Not imported: the page /docs sends its files. */
const PAGE_FILES = "swagger-ui-dist";
/** e_machine of ELF (its chapter 1, ELF header): Debian's name of the architecture. */
export const ARCHITECTURES = { 62: "amd64", 183: "arm64" };
const MACHINE_AT = 18;
/** What Node itself needs. */
const OLDEST_GLIBC_MINOR = 28;

/** Copies them into `to`.
 *  @throws {BuildError} when the folder is not built */
export function copyContents(folder, to) {
  const missing = NEEDED.filter((path) => !existsSync(join(folder, path)));
  if (missing.length > 0) throw new BuildError(`${folder} is no built headgate: ${missing.join(", ")} missing`);
  const filter = (path) => !isForOthers(path);
  for (const path of [...SHIPPED, ...packagesOf(folder)]) {
    const from = resolve(folder, path);
    if (existsSync(from)) cpSync(from, join(to, path), { recursive: true, dereference: true, filter });
  }
}

/** What packages bring for those who work on them, and addons for musl, which Debian does not have. */
function isForOthers(path) {
  const inPackages = path.split("/node_modules/")[1];
  return inPackages !== undefined && (/(^|\/)\./.test(inPackages) || /-musl(\/|$)/.test(inPackages));
}

/** The packages that run in production: of a checkout those that no bundle holds and what they need, else all there are. */
function packagesOf(folder) {
  const lock = join(folder, "package-lock.json");
  if (!existsSync(lock)) return ["node_modules"];
  const { packages } = JSON.parse(readFileSync(lock, "utf8"));
  return [...withDependencies(packages, [...INSTALLED_LIBRARIES, PAGE_FILES])];
}

/** The glibc that the addons in a folder need at least, like `2.28`: each names the versions of the symbols that it takes. */
export function glibcOf(folder) {
  const minors = addonsOf(folder).flatMap((path) =>
    [...readFileSync(path, "latin1").matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor)),
  );
  return `2.${Math.max(OLDEST_GLIBC_MINOR, ...minors)}`;
}

/** Debian's name of the architecture that the addons in a folder are for.
 *  @throws {BuildError} when there is none, or they differ */
export function architectureOf(folder) {
  const found = new Set(addonsOf(folder).map((path) => ARCHITECTURES[machineOf(path)]));
  const [architecture] = found;
  if (found.size !== 1 || architecture === undefined) {
    throw new BuildError(`the addons are of ${[...found].join(" and ") || "no architecture"}: a package is of one`);
  }
  return architecture;
}

function addonsOf(folder) {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".node"));
  return names.map((name) => join(folder, name));
}

function machineOf(path) {
  const header = Buffer.alloc(MACHINE_AT + 2);
  const file = openSync(path, "r");
  try {
    const isElf = readSync(file, header) === header.length && header.toString("latin1", 1, 4) === "ELF";
    return isElf ? header.readUInt16LE(MACHINE_AT) : null;
  } finally {
    closeSync(file);
  }
}
