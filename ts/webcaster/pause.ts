// Abortable waiting, and combined abort signals.

/** Resolves after `ms` milliseconds, or as soon as `signal` is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });
}

/** Aborted as soon as any of the signals is. Browsers of 2023 lack `AbortSignal.any`. */
export function firstOf(...signals: readonly AbortSignal[]): AbortSignal {
  const first = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) first.abort();
    signal.addEventListener("abort", () => first.abort(), { once: true, signal: first.signal });
  }
  return first.signal;
}
