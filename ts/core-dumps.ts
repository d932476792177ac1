// Core dumps are off: a dump of this process would hold every key and token it has in memory.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Logger } from "pino";

/** How long the system's tool may take, ms. */
const TOOL_LIMIT_MS = 2_000;

/** Sets the core size of this process to 0, for good; says so in the log when that cannot be done. */
export function forbidCoreDumps(log: Logger): void {
  // Node has no call for it; util-linux is part of every Linux that is not stripped to nothing.
  spawnSync("prlimit", [`--pid=${process.pid}`, "--core=0:0"], { timeout: TOOL_LIMIT_MS, stdio: "ignore" });
  if (!areForbidden()) log.warn("core dumps are on: start headgate with `ulimit -c 0`");
}

function areForbidden(): boolean {
  try {
    return /^Max core file size +0 +0 /m.test(readFileSync("/proc/self/limits", "utf8"));
  } catch {
    return false; // no Linux
  }
}
