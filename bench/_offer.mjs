// An offered load: a new operation does not wait for earlier ones.
import { wait } from "./_webhook.mjs";

/** Starts `act` this many times a second, evenly; resolves with all results. */
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
