// An offered load: what is begun does not wait for what was begun before it.
import { wait } from "./_webhook.mjs";

/** Begins `act` so many times a second, evenly; resolves with all results. */
export async function offer(perSecond, seconds, act) {
  const startedAt = performance.now();
  const results = [];
  for (let at = 0; at < perSecond * seconds; at += 1) {
    const ahead = startedAt + (at * 1_000) / perSecond - performance.now();
    if (ahead > 0) await wait(ahead);
    results.push(act(at));
  }
  return await Promise.all(results);
}
