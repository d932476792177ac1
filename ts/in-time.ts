// Waiting with a time limit.

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
