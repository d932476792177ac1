// Ends a process together with the processes that it has started.
import { readdirSync, readFileSync } from "node:fs";

/** Kills `pid` and its descendants. Each is stopped before its children are looked for, so that none starts another
 *  meanwhile. Where there is no /proc, only the process itself. */
export function killTree(pid: number): void {
  const found = new Set<number>();
  for (let next = [pid]; next.length > 0; next = childrenOf(found)) {
    for (const each of next) {
      found.add(each);
      signal(each, "SIGSTOP");
    }
  }
  for (const each of found) signal(each, "SIGKILL");
}

/** Children of these that are not among them. */
function childrenOf(parents: ReadonlySet<number>): number[] {
  return processes().filter((pid) => !parents.has(pid) && parents.has(parentOf(pid)));
}

function processes(): readonly number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** proc_pid_stat(5): the name in parentheses may contain anything. */
function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0; // it has exited
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has exited.
  }
}
