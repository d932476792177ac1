// Commands of `headgate` as an operator runs them. In the whole run each is a process of its own; otherwise one process loads
// the command line once for those that follow each other: most of a command's time is its start.
import { type ChildProcess, fork } from "node:child_process";
import { on } from "node:events";
import { start } from "./child.ts";
import { isWholeRun } from "./whole-run.ts";

export interface Said {
  readonly code: number | string;
  readonly out: string;
  readonly err: string;
}
type Environment = Readonly<Record<string, string | undefined>>;

/** The process ends when no command has come for as long, ms. */
const IDLE_MS = 1_000;

interface Host {
  readonly child: ChildProcess;
  /** What it sends, until it ends. */
  readonly answers: AsyncIterator<[Said]>;
}
let host: Host | null = null;
let last: Promise<unknown> = Promise.resolve();
let waiting = 0;
let idle: NodeJS.Timeout | undefined;
process.on("exit", () => host?.child.kill("SIGKILL"));

/** Runs a command to its end. It must end by itself: it gets no signal, and what is asked for meanwhile follows it. */
export async function command(words: readonly string[], env: Environment): Promise<Said> {
  if (isWholeRun) return await commandInProcess(words, env);
  clearTimeout(idle);
  waiting += 1;
  const said = last.then(() => commandInHost(words, env));
  last = said
    .catch(() => {})
    .then(() => {
      waiting -= 1;
      if (waiting === 0) idle = setTimeout(endHost, IDLE_MS).unref();
    });
  return await said;
}

/** What a command writes to standard output; fails unless its exit code is 0. `run`: how it is run. */
export async function outputOf(words: readonly string[], env: Environment, run = command): Promise<string> {
  const { code, out, err } = await run(words, env);
  if (code !== 0) throw new Error(`headgate ${words.join(" ")} ended with ${code}: ${err}`);
  return out;
}

/** Runs a command in a process of its own. */
export async function commandInProcess(words: readonly string[], env: Environment): Promise<Said> {
  const child = start(process.execPath, ["scripts/headgate.mjs", ...words], { env: { ...env } });
  const code = await child.exit;
  return { code, out: child.stdout(), err: child.stderr() };
}

async function commandInHost(words: readonly string[], env: Environment): Promise<Said> {
  host ??= startHost();
  const { child, answers } = host;
  child.send({ words, env });
  const { value, done } = await answers.next();
  if (done) {
    host = null;
    throw new Error(`the process of commands died of headgate ${words.join(" ")}`);
  }
  return value[0];
}

function startHost(): Host {
  const child = fork("test/fixtures/command-host.mjs", { env: { PATH: process.env.PATH }, execArgv: [] });
  child.unref();
  child.channel?.unref();
  return { child, answers: on(child, "message", { close: ["exit"] }) as AsyncIterator<[Said]> };
}

function endHost(): void {
  host?.child.disconnect();
  host = null;
}
