// What the kernel reports about a process: processor time, memory, threads, descriptors. Linux only.
import { readdirSync, readFileSync } from "node:fs";

const TICKS_PER_SECOND = 100;
/** How long an idle server is watched, ms: its own cost is subtracted. */
const IDLE_MS = 3_000;
/** Memory is steady if it changes by less than this for this many seconds; the wait is limited. */
const STEADY_KB = 500;
const STEADY_S = 10;
const STEADY_LIMIT_S = 40;

/** CPU seconds a process has used so far, all threads. */
export function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Seconds in which a core was idle or the hypervisor had taken it away; the rest is work, whichever process it was for. */
export function idleSeconds(core) {
  const line = readFileSync("/proc/stat", "utf8")
    .split("\n")
    .find((text) => text.startsWith(`cpu${core} `));
  // user, nice, system, idle, iowait, irq, softirq, steal (proc_stat 5).
  const [, , , idle, iowait, , , steal] = line.split(" ").slice(1).map(Number);
  return (idle + iowait + steal) / TICKS_PER_SECOND;
}

/** CPU seconds of the threads with this name prefix, and the seconds in which they were ready but did not run. */
export function threadSeconds(pid, prefix) {
  const sum = { cpu: 0, waited: 0 };
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    if (!readFileSync(`${folder}/comm`, "utf8").startsWith(prefix)) continue;
    // Nanoseconds on the processor and waiting for it (Documentation/scheduler/sched-stats.rst).
    const [cpu, waited] = readFileSync(`${folder}/schedstat`, "utf8").split(" ");
    sum.cpu += Number(cpu) / 1e9;
    sum.waited += Number(waited) / 1e9;
  }
  return sum;
}

/** CPU seconds of the media core's threads, without those of Node, whose idle cost varies. */
export const coreSeconds = (pid) => threadSeconds(pid, "media-").cpu + threadSeconds(pid, "audio-").cpu;

/** Resident memory of a process, kB. */
export function residentKb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

export const descriptors = (pid) => readdirSync(`/proc/${pid}/fd`).length;
export const threads = (pid) => readdirSync(`/proc/${pid}/task`).length;

/** Resident memory of a process once it is steady, kB: V8 releases the memory of a burst only after some seconds. */
export async function steadyResidentKb(pid) {
  let samples = [];
  for (let waited = 0; waited < STEADY_LIMIT_S; waited += 1) {
    samples = [...samples, residentKb(pid)].slice(-STEADY_S);
    if (samples.length === STEADY_S && Math.max(...samples) - Math.min(...samples) < STEADY_KB) break;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  return samples.at(-1);
}

/** CPU milliseconds that an idle process uses per second. */
export async function idleCpuMs(pid) {
  const before = cpuSeconds(pid);
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
  return ((cpuSeconds(pid) - before) * 1_000_000) / IDLE_MS;
}

/** UDP datagrams dropped because of a full receive buffer, on the whole machine. */
export function udpDrops() {
  const [names, values] = readFileSync("/proc/net/snmp", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("Udp:"))
    .map((line) => line.split(" "));
  return Number(values[names.indexOf("RcvbufErrors")]);
}
