// A clock that never goes back, for what is kept in memory for a while: a lock-out would otherwise last as long as the
// step of a clock that is set back.

/** Time in ms that continues from where it was when the given clock is set back. */
export function steadyClock(of: { now(): number }): { now(): number } {
  let latest = of.now();
  let elapsed = latest;
  return {
    now() {
      const now = of.now();
      elapsed += Math.max(0, now - latest);
      latest = now;
      return elapsed;
    },
  };
}
