// System calls of a process, counted by the kernel's tracepoints through perf.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

const READS = ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"];
const WRITES = ["write", "writev", "sendto", "sendmsg", "sendmmsg"];
const WAITS = ["epoll_wait", "epoll_pwait"];
const SLEEPS = ["nanosleep", "clock_nanosleep"];
const event = (name) => `syscalls:sys_enter_${name}`;

const canCount = () => spawnSync("perf", ["stat", "-e", event("read"), "true"], { stdio: "ignore" }).status === 0;

/** Starts counting; `stop` resolves with reads, writes, waits and sleeps per second. Null where perf is not
 *  allowed. */
export function countSyscalls(pid) {
  if (!canCount()) return null;
  const events = [...READS, ...WRITES, ...WAITS, ...SLEEPS].map(event).join(",");
  const child = spawn("perf", ["stat", "-x", ",", "-e", events, "-p", String(pid)], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const since = performance.now();
  let told = "";
  child.stderr.on("data", (text) => {
    told += text;
  });
  return {
    async stop() {
      const seconds = (performance.now() - since) / 1_000;
      child.kill("SIGINT");
      await once(child, "close");
      const counts = new Map(told.split("\n").map((line) => [line.split(",")[2], Number(line.split(",")[0])]));
      const sum = (names) => names.reduce((total, name) => total + (counts.get(event(name)) || 0), 0) / seconds;
      return { reads: sum(READS), writes: sum(WRITES), waits: sum(WAITS), sleeps: sum(SLEEPS) };
    },
  };
}
