// What a published addon must be: for its system, stripped, small, and without a path of the machine that built it.
import { readFileSync } from "node:fs";
import { GLIBC } from "./targets.mjs";

/** @import { Target } from "./targets.mjs" */

/** An addon that exceeds this includes something that it does not need.
 *  @type {number} */
export const ADDON_LIMIT_BYTES = 12_000_000;
const [, GLIBC_MINOR] = GLIBC.split(".").map(Number);

/** What is wrong with the library at `path`, as texts.
 *  @param {string} path
 *  @param {import("./targets.mjs").Target} target
 *  @param {boolean} isOfThisMachine built for this machine alone, by its own linker: it may need its C library
 *  @returns {string[]} */
export function faultsOfAddon(path, target, isOfThisMachine = false) {
  const bytes = readFileSync(path);
  if (bytes.length < 64 || bytes.readUInt32BE(0) !== 0x7f454c46) return ["is not an ELF file"];
  const faults = [];
  const machine = bytes.readUInt16LE(18);
  if (machine !== target.machine) faults.push(`is for the processor ${machine}, not ${target.machine}`);
  if (bytes.length > ADDON_LIMIT_BYTES) faults.push(`has ${bytes.length} bytes, more than ${ADDON_LIMIT_BYTES}`);
  if (bytes.includes("\0.symtab\0")) faults.push("is not stripped");
  const newest = glibcOf(bytes);
  if (target.libc === "musl" && newest !== null) faults.push("needs glibc");
  if (target.libc === "glibc" && !isOfThisMachine && (newest ?? 0) > GLIBC_MINOR)
    faults.push(`needs glibc 2.${newest}, not ${GLIBC}`);
  return faults;
}

/** The minor version of the newest glibc 2 whose symbols it imports; null if it imports none.
 *  @param {Buffer} bytes */
export function glibcOf(bytes) {
  const asked = [...bytes.toString("latin1").matchAll(/\0GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  return asked.length === 0 ? null : Math.max(...asked);
}
