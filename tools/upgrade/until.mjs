// Waits of the scripts that upgrade a running service.
import { wait } from "../../bench/_webhook.mjs";

/** A wait that resolves with what `look` finds, and rejects when it finds nothing within `limitMs`. */
export const untilWithin = (limitMs) => async (what, look) => {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`not within ${limitMs / 1_000} s: ${what}`);
    await wait(100);
  }
};
