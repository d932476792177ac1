// Memory, descriptors and event-loop delay of this process, and their limits: from /proc and the control group. A
// figure that the system does not provide is absent.
import { readFileSync, statSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { getHeapStatistics } from "node:v8";
import type { Registry } from "prom-client";
import { openLoopDelay } from "./loop-delay.ts";
import type { Usage } from "./room.ts";

/** Version 1 of control groups reports a missing limit as a number above any machine's memory, bytes. */
const NO_LIMIT_BYTES = 2 ** 60;

export interface ProcessFigures {
  readonly memory: Usage | null;
  readonly heap: Usage;
  readonly descriptors: Usage | null;
  /** Average since the last reading, ms. */
  readonly loopLateMs: number;
}

/** Files of a control group's memory: the limit, the usage, and how much of that can be reclaimed. */
interface MemoryGroup {
  readonly limit: string;
  readonly used: string;
  readonly stat: string;
  readonly reclaimable: RegExp;
}

export interface ProcessMeter {
  read(): ProcessFigures;
  /** Whether the event loop was busy before the last reading. */
  isBusy(): boolean;
  stop(): void;
}

/** Measures this process until `stop`. `memoryMb`: the memory available, or 0 for what the system reports. `registry`:
 *  for the metrics of the event loop. */
export function openFigures(
  { memoryMb }: { readonly memoryMb: number },
  registry: Registry | null = null,
): ProcessMeter {
  const loop = openLoopDelay(registry);
  const groups = memoryGroups(readText("/proc/self/cgroup") ?? "");
  const descriptorLimit = ownDescriptorLimit();
  let last: Pick<ProcessFigures, "memory"> | null = null;

  function memory(): Usage | null {
    const limit = memoryMb === 0 ? totalmem() : memoryMb * 1e6;
    const own = { used: process.memoryUsage.rss(), limit };
    const all = [own, ...groups.map(usageOf).filter((usage) => usage !== null)];
    return all.reduce((one, other) => (share(other) > share(one) ? other : one));
  }

  return {
    read() {
      const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
      try {
        last = { memory: memory() };
      } catch {
        // Without a free descriptor nothing can be read: the last values are used.
      }
      return {
        memory: last?.memory ?? null,
        heap: { used, limit },
        descriptors: descriptorLimit === null ? null : { used: openDescriptors(), limit: descriptorLimit },
        loopLateMs: loop.averageMs(),
      };
    },
    isBusy: loop.isBusy,
    stop: loop.stop,
  };
}

const share = ({ used, limit }: Usage) => used / limit;

/** Since Linux 6.2 the size of the folder is the number of its entries, which can be read without a descriptor; before
 *  that it is 0, and only the RTMP connections show how many are in use. */
function openDescriptors(): number {
  try {
    return statSync("/proc/self/fd").size;
  } catch {
    return 0;
  }
}

/** The limit of this process. */
export const ownDescriptorLimit = (): number | null => descriptorLimitOf(readText("/proc/self/limits") ?? "");

/** The limit of open files (proc_pid_limits(5)); null where it cannot be determined. */
export function descriptorLimitOf(limits: string): number | null {
  const [, soft] = /^Max open files +(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? null : Number(soft);
}

/** The control groups that may limit this process's memory, by /proc/self/cgroup (cgroups(7)): its own and its
 *  ancestors, of version 2 or 1. */
export function memoryGroups(cgroup: string, root = "/sys/fs/cgroup"): readonly MemoryGroup[] {
  const groups: MemoryGroup[] = [];
  for (const line of cgroup.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path === undefined || (controllers !== "" && !controllers?.split(",").includes("memory"))) continue;
    for (let at = path; ; at = join(at, "..")) {
      groups.push(
        controllers === ""
          ? groupAt(join(root, at), ["memory.max", "memory.current"], /^inactive_file (\d+)/m)
          : groupAt(
              join(root, "memory", at),
              ["memory.limit_in_bytes", "memory.usage_in_bytes"],
              /^total_inactive_file (\d+)/m,
            ),
      );
      if (at === "/") break;
    }
  }
  // A limit may be set, and changed, while the service runs.
  return groups.filter(({ limit }) => readText(limit) !== null);
}

function groupAt(folder: string, [limit, used]: readonly [string, string], reclaimable: RegExp): MemoryGroup {
  return { limit: join(folder, limit), used: join(folder, used), stat: join(folder, "memory.stat"), reclaimable };
}

/** null without a limit. Throws when it cannot be read. */
export function usageOf({ limit, used, stat, reclaimable }: MemoryGroup): Usage | null {
  const allowed = Number(readText(limit) ?? Number.NaN);
  if (!(allowed < NO_LIMIT_BYTES)) return null;
  const [, cached = "0"] = reclaimable.exec(readFileSync(stat, "utf8")) ?? [];
  return { used: Math.max(0, Number(readFileSync(used, "utf8")) - Number(cached)), limit: allowed };
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
