// The noise gate of a measurement: a loop spins on each core for a second; the share of that second in gaps of more than
// a millisecond is what other processes or the hypervisor took.
import { execFileSync } from "node:child_process";
import { LOAD_CORE, SERVER_CORE } from "./_servers.mjs";

/** A larger share in gaps says that the machine is not quiet enough to measure. */
export const GAPS_LIMIT = 0.01;
const SPIN = `
  const end = performance.now() + 1000;
  let [last, gaps] = [performance.now(), 0];
  while (last < end) {
    const now = performance.now();
    if (now - last > 1) gaps += now - last;
    last = now;
  }
  console.log(gaps / 1000);`;

/** The larger share of the two cores that are measured on. */
export function gaps() {
  const onCore = (core) =>
    Number(execFileSync("taskset", ["-c", core, process.execPath, "-e", SPIN], { encoding: "utf8" }));
  return Math.max(...[SERVER_CORE, LOAD_CORE].map(onCore));
}
