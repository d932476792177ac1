// After a handover: this former process watches the processes after it, and starts another when the last of them dies.
// Meanwhile it keeps the listening sockets open: connections wait, and none is refused.
import type { Logger } from "pino";
import { reasonOf } from "../reason.ts";
import { locationOfFault } from "./fault-location.ts";
import type { LifelineWord } from "./lifeline.ts";
import type { ServiceManager } from "./manager.ts";
import type { Successor } from "./successor.ts";

/** Pause before the second attempt in a row, doubled before each further one, and the longest, ms. */
const PAUSE_MS = 1_000;
const PAUSE_LIMIT_MS = 15_000;
/** A process that has served for this long counts as sound, ms. */
const SOUND_MS = 60_000;

/** `serving`: a process after this one serves. `vacant`: none does. `stopped`: none is to serve any more. */
type Status = "serving" | "vacant" | "stopped";

export interface SuccessionDeps {
  readonly log: Logger;
  readonly manager: ServiceManager;
  /** Starts a process that serves. Rejects with `UpgradeFailed`, at once when `cancelled` is aborted. */
  readonly introduce: (cancelled: AbortSignal) => Promise<Successor>;
  /** Closes the kept listening sockets. */
  readonly closeSockets: () => void;
  /** Called when a process could not be started, and when the publishes of this one are to end. */
  readonly failed: () => void;
  readonly stopNow: () => void;
  /** Number of publishes running here. */
  readonly running: () => number;
}

export interface Succession {
  /** Watches the process to which this one has handed over, and those after it. Call once. */
  follow(successor: Successor): void;
  heard(word: LifelineWord): void;
  /** Whether nobody serves any more, although the service was not told to stop. */
  isVacant(): boolean;
  /** Starts no further process; resolves when the one that is starting serves, or has failed to. */
  finish(): Promise<void>;
  /** The service is to stop: as `finish`, but a process that is starting is ended. */
  cancel(): void;
  /** Nothing of this process is to be waited for any more, although it stays. */
  idle(): void;
  /** Asks the process that serves to stop. */
  passOnStop(): void;
  /** Resolves when all processes after this one have exited; call after `finish`. */
  over(): Promise<void>;
}

export function createSuccession(deps: SuccessionDeps): Succession {
  const { log, manager } = deps;
  const cancelled = new AbortController();
  let status: Status = "serving";
  let current: Successor | null = null;
  let isFinished = false;
  let isIdle = false;
  let wake = (): void => {};
  let attempt: Promise<unknown> = Promise.resolve();
  let followed: Promise<void> = Promise.resolve();
  /** Processes started in a row, none of which was sound. */
  let starts = 0;

  async function follow(first: Successor): Promise<void> {
    for (let successor: Successor | null = first; successor !== null; successor = await replacement()) {
      current = successor;
      const sound = setTimeout(() => {
        starts = 0;
      }, SOUND_MS).unref();
      await successor.lifeline.ended;
      clearTimeout(sound);
      if (status === "stopped") break;
      status = "vacant";
      if (isFinished) break;
      log.error(
        { successor: successor.pid, publishes: deps.running() },
        "the process that took over has died: this former one starts another",
      );
      await manager.tell(`MAINPID=${process.pid}`);
    }
    deps.closeSockets();
  }

  /** null when none is to be started any more. */
  async function replacement(): Promise<Successor | null> {
    while (!isFinished) {
      if (starts > 0) await pause(Math.min(PAUSE_MS * 2 ** (starts - 1), PAUSE_LIMIT_MS));
      if (isFinished) break;
      starts += 1;
      const attempted = start();
      attempt = attempted;
      const successor = await attempted;
      if (successor !== null) return successor;
    }
    return null;
  }

  async function start(): Promise<Successor | null> {
    try {
      const successor = await deps.introduce(cancelled.signal);
      await manager.tell(`MAINPID=${successor.pid}`);
      successor.tell("yours");
      successor.release();
      if (status === "vacant") status = "serving";
      log.warn({ successor: successor.pid }, "a new process took the place of the one that died");
      return successor;
    } catch (error) {
      deps.failed();
      const reason = `${reasonOf(error)}${await locationOfFault(error)}`;
      log.error({ reason }, "no process could be started in place of the one that died");
      return null;
    }
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function finish(): Promise<void> {
    isFinished = true;
    wake();
    await attempt;
  }

  function cancel(): void {
    status = "stopped";
    cancelled.abort();
    void finish();
  }

  function tellIdle(): void {
    if (isIdle && status === "stopped") current?.lifeline.tell("idle");
  }

  return {
    follow(successor) {
      followed = follow(successor);
    },
    heard(word) {
      if (status === "serving") log.info("the service was told to stop: no process replaces the one that serves");
      status = "stopped";
      deps.closeSockets();
      if (word === "now") deps.stopNow();
      tellIdle();
    },
    isVacant: () => status === "vacant",
    finish,
    cancel,
    idle() {
      isIdle = true;
      tellIdle();
    },
    passOnStop: () => current?.lifeline.tell("stop"),
    over: () => followed,
  };
}
