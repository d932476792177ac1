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
