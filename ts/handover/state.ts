// The state of a service in one word: for /readyz, the metrics, the log and the service manager.
import type { Logger } from "pino";
import { Counter, Gauge, type Registry } from "prom-client";

/** `handing_over`: a new process is starting beside this one. `leaving`: the new process accepts all new connections,
 *  and this one ends with its last publish. `draining`: no new publishes, after a signal or `headgate nodes drain`. */
const WORDS = ["starting", "ready", "handing_over", "draining", "leaving", "stopped"] as const;
export type StateWord = (typeof WORDS)[number];

export interface ServiceState {
  word(): StateWord;
  become(word: StateWord): void;
}

/** `isDraining`: whether an operator has asked for no new publishes; reported only in state `ready`. */
export function createState(log: Pick<Logger, "info">, isDraining: () => boolean): ServiceState {
  let state: StateWord = "starting";
  return {
    word: () => (state === "ready" && isDraining() ? "draining" : state),
    become(next) {
      if (next === state) return;
      log.info({ former: state, state: next }, STATED[next]);
      state = next;
    },
  };
}

const STATED: Readonly<Record<StateWord, string>> = {
  starting: "starting",
  ready: "ready",
  handing_over: "handing over: a new process starts",
  draining: "draining: this service stops when its publishes have ended",
  leaving: "handed over: this process exits when its publishes have ended",
  stopped: "stopped",
};

/** Exports the state as several series, 1 for the current one, and counts calls of `failed`. */
export function watchState(registry: Registry, state: Pick<ServiceState, "word">): { failed(): void } {
  new Gauge({
    name: "headgate_state_info",
    help: "1 for what the service does now: starting, ready, handing_over, draining, leaving, stopped",
    labelNames: ["state"],
    registers: [registry],
    collect() {
      for (const word of WORDS) this.set({ state: word }, word === state.word() ? 1 : 0);
    },
  });
  const failures = new Counter({
    name: "headgate_upgrade_failed_total",
    help: "Times a new process failed to take this one's place",
    registers: [registry],
  });
  return { failed: () => failures.inc() };
}

/** Why no new publishes are accepted, for `/readyz`; null while they are. While handing over they still are. A caller
 *  that reaches a leaving process does so by an existing connection: new connections to this address reach the new
 *  process, which accepts publishes. `isSuccessor`: until this process is ready, the one that it replaces accepts them
 *  beside it, on the same ports. */
export function notReady(word: StateWord, isSuccessor: boolean): string | null {
  if (word === "starting" && isSuccessor) return null;
  return word === "ready" || word === "handing_over" || word === "leaving" ? null : word;
}
