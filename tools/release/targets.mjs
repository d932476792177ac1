// The systems that a release supports, by the names of their packages.

/** @typedef {{
 *    readonly name: string;
 *    readonly triple: string;
 *    readonly cpu: "x64" | "arm64";
 *    readonly libc: "glibc" | "musl";
 *    readonly machine: number;
 *  }} Target */

/** Oldest glibc that runs a release: Debian 10, RHEL 8, Ubuntu 18.10.
 *  @type {string} */
export const GLIBC = "2.28";

/**
 * @typedef {object} Target
 * @property {string} name in the name of the service's file, by napi-rs's convention
 * @property {string} triple as rustc calls it
 * @property {"x64" | "arm64"} cpu as npm and Node call it
 * @property {"glibc" | "musl"} libc as npm calls it
 * @property {number} machine e_machine in the header of its ELF files
 */

/** @type {readonly Target[]} */
export const TARGETS = [
  target("x64", "gnu", "x86_64", 0x3e),
  target("arm64", "gnu", "aarch64", 0xb7),
  target("x64", "musl", "x86_64", 0x3e),
  target("arm64", "musl", "aarch64", 0xb7),
];

function target(cpu, library, processor, machine) {
  const libc = library === "gnu" ? "glibc" : "musl";
  return { name: `linux-${cpu}-${library}`, triple: `${processor}-unknown-linux-${library}`, cpu, libc, machine };
}

/** The target of this machine: Node reports whether it uses glibc.
 *  @returns {Target} */
export function ownTarget() {
  const { glibcVersionRuntime } = process.report.getReport().header;
  const libc = glibcVersionRuntime === undefined ? "musl" : "glibc";
  const own = TARGETS.find((each) => each.cpu === process.arch && each.libc === libc);
  if (process.platform !== "linux" || own === undefined) throw new Error("no release is made for this machine");
  return own;
}

/** `names`: of targets, separated by commas, or `own`; all if it is undefined.
 *  @param {string | undefined} names */
export function targetsOf(names) {
  if (names === undefined) return TARGETS;
  return names.split(",").map((name) => {
    const found = name === "own" ? ownTarget() : TARGETS.find((each) => each.name === name);
    if (found === undefined) throw new Error(`${name} is none of ${TARGETS.map((each) => each.name).join(", ")}, own`);
    return found;
  });
}

/** The file of the service's package for a target.
 *  @param {Target} target
 *  @param {string} version */
export const archiveOf = ({ name }, version) => `headgate-${version}-${name}.tgz`;
