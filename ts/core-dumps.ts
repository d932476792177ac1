// Disables core dumps: a dump of this process would contain every key and token in its memory.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Logger } from "pino";

/** How long the system tool may take, ms. */
const TOOL_LIMIT_MS = 2_000;

/** Sets the core size limit of this process to 0, permanently; logs when that is not possible. */
export function forbidCoreDumps(log: Logger): void {
  // Node has no call for it; util-linux is part of every Linux that is not minimal.
  spawnSync("prlimit", [`--pid=${process.pid}`, "--core=0:0"], { timeout: TOOL_LIMIT_MS, stdio: "ignore" });
  if (!areForbidden()) log.warn("core dumps are on: start headgate with `ulimit -c 0`");
}

function areForbidden(): boolean {
  try {
    return /^Max core file size +0 +0 /m.test(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return false; // not Linux
  }
}
