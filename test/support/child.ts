// Programs that tests start. None outlives its test process, whatever happens.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { inTime } from "../../ts/in-time.ts";

/** What a check that begins just before the deadline may take, ms. */
const LAST_LOOK_MS = 15_000;
const STUCK = Symbol("stuck");

const alive = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});
// vitest ends a test process by this signal, which by default would not emit the event above.
process.once("SIGTERM", () => process.exit(143));

export interface Child {
  readonly pid: number;
  /** Everything it has written so far. */
  stdout(): string;
  stderr(): string;
  /** Its exit code, or the name of the signal that ended it. */
  readonly exit: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts a program without standard input. */
export function start(command: string, args: readonly string[], options: SpawnOptions = {}): Child {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  alive.add(child);
  const written = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]?.setEncoding("utf8").on("data", (text: string) => {
      written[name] += text;
    });
  }
  const exit = once(child, "close").then(([code, signal]) => {
    alive.delete(child);
    return (code ?? signal) as number | string;
  });
  exit.catch(() => alive.delete(child));
  return {
    pid: child.pid ?? 0,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    exit,
    kill: (signal) => child.kill(signal),
  };
}

/** Runs a program to its end; if its exit code is not 0, fails with its output. */
export async function run(command: string, args: readonly string[], options: SpawnOptions = {}): Promise<Child> {
  const child = start(command, args, options);
  const code = await child.exit;
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${child.stderr().slice(-2_000)}`);
  return child;
}

/** Waits until `look` returns something, asking every `everyMs`, by default less often the longer it waits: what it asks is
 *  often a service, which works for each answer. Fails after `limitMs` with `what`, even if `look` itself never ends. */
export async function until<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  limitMs = 30_000,
  everyMs: number | null = null,
): Promise<T> {
  const began = performance.now();
  const deadline = began + limitMs;
  const restMs = () => everyMs ?? Math.min(Math.max((performance.now() - began) / 20, 20), 60);
  for (;;) {
    const left = deadline - performance.now();
    const found = await inTime(Math.max(left, LAST_LOOK_MS), Promise.resolve(look()), STUCK);
    if (found === STUCK) throw new Error(`not in time, nor did the check end: ${what}`);
    if (found !== null && found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, restMs()));
  }
}
