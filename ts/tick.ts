// When the parts of this process that run from time to time run: at the same moments, so that an idle one sleeps longer.

/** Time until what runs about every `everyMs` runs again, ms: until a multiple of it since this process started, at least
 *  half of it and at most one and a half. */
export function untilTick(everyMs: number, sinceStartMs = performance.now()): number {
  const left = everyMs - (sinceStartMs % everyMs);
  return left < everyMs / 2 ? left + everyMs : left;
}
