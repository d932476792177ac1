// Waiting with a time limit or until the moment at which others wait, too, and a clock that is never set back.

/** The result of `work`, or `late` when it takes longer than `limitMs`. Rejects as `work` does; a later result or
 *  rejection is ignored. */
export async function inTime<T, L>(limitMs: number, work: Promise<T>, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late), limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** A clock that continues from where it was when the given one is set back, ms: for what is kept in memory for a while. A
 *  lock-out would otherwise last as long as the step. */
export function steadyClock(of: { now(): number }): { now(): number } {
  let latest: number | null = null;
  let elapsed = 0;
  return {
    now() {
      const now = of.now();
      elapsed += Math.max(0, now - (latest ?? 0));
      latest = now;
      return elapsed;
    },
  };
}

/** Time until what runs about every `everyMs` runs again, ms: until a multiple of it since this process started, so that an
 *  idle process sleeps longer; at least half of it and at most one and a half. */
export function untilTick(everyMs: number, sinceStartMs = performance.now()): number {
  const left = everyMs - (sinceStartMs % everyMs);
  return left < everyMs / 2 ? left + everyMs : left;
}

/** Steps kept of a clock: the oldest are forgotten first. */
const STEPS_LIMIT = 16;
/** Smaller ones belong to a clock that is disciplined, ms. */
const STEP_LEAST_MS = 2_000;

/** Returns by how much the clock has been set forward since a time before, epoch ms: what waits does not grow old because
 *  somebody sets a clock. Steps are known from the beginning of this process on. `elapsed`: on a monotonic clock. */
export function forwardSteps(of: { now(): number }, elapsed = () => performance.now()): (since: number) => number {
  const steps: { readonly at: number; readonly by: number }[] = [];
  let ahead = of.now() - elapsed();
  return (since) => {
    const now = of.now();
    const by = now - elapsed() - ahead;
    if (by >= STEP_LEAST_MS) steps.push({ at: now - by, by });
    if (steps.length > STEPS_LIMIT) steps.shift();
    ahead += by;
    return steps.reduce((sum, step) => sum + (since <= step.at ? step.by : 0), 0);
  };
}
