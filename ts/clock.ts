// The clocks. Used only where the service is put together; everything else receives a clock as an argument.

/** Epoch ms. */
export const clock = { now: () => Date.now() };

/** Time that never goes back, ms: while the given clock is set back, it continues from where it was. For what is kept in
 *  memory for a while: a lock-out would otherwise last as long as the step. */
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
