// Abortable waiting.

/** The longest time of a timer, milliseconds: a longer one would be over at once. */
const TIMER_LIMIT_MS = 2 ** 31 - 1;

/** Resolves after `ms` milliseconds, or as soon as one of the signals is aborted; then none of them is listened to. */
export function pause(ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    if (signals.some(({ aborted }) => aborted)) return resolve();
    const done = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, TIMER_LIMIT_MS));
    for (const signal of signals) signal.addEventListener("abort", done);
  });
}

/** The result of `work`, or a rejection with the reason of the abort if that comes first. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const listening = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { signal: listening.signal });
  });
  try {
    const result = await Promise.race([work, aborted]);
    signal.throwIfAborted();
    return result;
  } finally {
    listening.abort();
  }
}
