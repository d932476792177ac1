// A node dies beside others: `npm run bench -- deaths [--publishes 3000] [--survivors 3] [--pulls 2000] [--delay 1]`.
// Prints how long it takes until every end is told, and how regular the heartbeats of the others are.
import { parseArgs } from "node:util";
import { measureDeath } from "./_deaths.mjs";

/** Promised: all ends after the last sign of life, each heartbeat, and the time between two, ms. */
const ENDED_LIMIT_MS = 15_000;
const BEAT_LIMIT_MS = 100;
const GAP_LIMIT_MS = 3_000;

export async function bench(words) {
  const number = (fallback) => ({ type: "string", default: String(fallback) });
  const options = { publishes: number(3_000), survivors: number(3), pulls: number(2_000), delay: number(1) };
  const { values } = parseArgs({ args: words, options });
  const [publishes, survivors, pulls, delayMs] = ["publishes", "survivors", "pulls", "delay"].map((name) =>
    Number(values[name]),
  );
  const { told, recordedMs, endedMs, cpuMs, ends, beatMs, gapMs, lost } = await measureDeath({
    publishes,
    survivors,
    pulls,
    delayMs,
  });
  const line = (what, value, limit) => console.log(`${what}: ${Math.round(value)} ms (at most ${limit} ms)`);
  console.log(`ends told: ${told} of ${publishes}; by node: ${ends.join(", ")}; others declared dead: ${lost}`);
  line("all ends in the store after the last sign of life", recordedMs, ENDED_LIMIT_MS);
  line("all ends told after the last sign of life", endedMs, ENDED_LIMIT_MS);
  console.log(`CPU time of the others, from the death on: ${(cpuMs / publishes).toFixed(2)} ms per end`);
  line("longest heartbeat of the others", beatMs, BEAT_LIMIT_MS);
  line("longest time between two heartbeats", gapMs, GAP_LIMIT_MS);
  const isKept = endedMs <= ENDED_LIMIT_MS && beatMs <= BEAT_LIMIT_MS && gapMs <= GAP_LIMIT_MS;
  if (told !== publishes || lost > 0 || !isKept) process.exitCode = 1;
}
