// What each signal does to a running service. Every signal that a program may handle, and that would otherwise end the
// process at once, is handled: none ends it without a drain. Not here: what only a fault of the program itself raises
// (SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP), which ends it, and the service manager starts it again;
// and SIGPIPE and SIGXFSZ, which Node ignores, since the write fails anyway.

export type SignalEffect = "stop" | "reload" | "ignore";

/** docs/operating.md has this table too. SIGXCPU: the limit of processor time is reached (setrlimit(2)). SIGPWR: the
 *  power fails, or a container manager stops its machine. SIGUSR1: without a listener, Node opens its debugger's port,
 *  by which every program of this machine can command the process. */
export const SIGNALS = {
  SIGTERM: "stop",
  SIGINT: "stop",
  SIGQUIT: "stop",
  SIGPWR: "stop",
  SIGXCPU: "stop",
  SIGHUP: "reload",
  SIGUSR1: "ignore",
  SIGUSR2: "ignore",
  SIGALRM: "ignore",
  SIGVTALRM: "ignore",
  SIGPROF: "ignore",
  SIGIO: "ignore",
  SIGSTKFLT: "ignore",
} as const satisfies Partial<Record<NodeJS.Signals, SignalEffect>>;

export interface SignalHandlers {
  stop(signal: NodeJS.Signals): void;
  reload(): void;
  /** Called once for each ignored signal. */
  ignored(signal: NodeJS.Signals): void;
}

/** Handles the signals from now on: one that arrives before `serve` takes effect then. */
export function handleSignals(): { serve(handlers: SignalHandlers): void } {
  const waiting = new Set<NodeJS.Signals>();
  const reported = new Set<NodeJS.Signals>();
  let act = (signal: NodeJS.Signals): void => void waiting.add(signal);
  for (const signal of Object.keys(SIGNALS) as (keyof typeof SIGNALS)[]) {
    // A profiler samples with it, and a listener would take its place.
    if (signal === "SIGPROF" && process.execArgv.some((flag) => /^--(cpu-)?prof/.test(flag))) continue;
    try {
      process.on(signal, () => act(signal));
    } catch {
      // This system or this runtime does not have it.
    }
  }
  return {
    serve({ stop, reload, ignored }) {
      act = (signal) => {
        const effect: SignalEffect = SIGNALS[signal as keyof typeof SIGNALS];
        if (effect === "stop") stop(signal);
        else if (effect === "reload") reload();
        else if (!reported.has(signal)) {
          reported.add(signal);
          ignored(signal);
        }
      };
      for (const signal of waiting) act(signal);
    },
  };
}
