// Reliability R2: publishes that come and go.
import { descriptors, residentKb, threads } from "../bench/_process.mjs";
import { wait } from "../bench/_webhook.mjs";
import { endsOf, faultsWhere, load, startService, untilAllEnded } from "./_service.mjs";

export const title = "publishes of one second, ended by DELETE, by a close, or by silence";

const PUBLISHES = 20_000;
/** Publishes in parallel. Each name is reused only after the silence of 30 s that ends a WHIP publish. */
const AT_ONCE = 60;
const NAMES = 3_000;
/** Publishes before the measurement: what Node compiles and keeps for the first ones is not counted. */
const WARM_SHARE = 0.1;
const END_LIMIT_S = 60;
const GROWTH_LIMIT_MB = 20;
/** V8 releases the memory of a burst only after a while. */
const SETTLE_MS = 30_000;

export async function endure(share) {
  const publishes = Math.max(60, Math.round(PUBLISHES * share));
  const server = await startService(Math.min(NAMES, publishes));
  const where = [server.target, server.http, server.streamUrl, server.names().join(",")];
  const churn = (count) => load("churn", ...where, count, Math.min(AT_ONCE, count), "all");
  try {
    const isLong = share > 0.1;
    if (isLong) await churn(Math.round(publishes * WARM_SHARE));
    if (isLong) await untilAllEnded(server.customer, END_LIMIT_S);
    if (isLong) await wait(SETTLE_MS);
    const before = sample(server.pid);
    const { published, failed, failures } = await churn(publishes);
    const lastEndS = await untilAllEnded(server.customer, END_LIMIT_S);
    if (isLong) await wait(SETTLE_MS);
    const after = sample(server.pid);
    const { length: running } = await server.call("GET", "/session");
    const ends = endsOf(server.customer);
    const growthMb = Number(((after.kb - before.kb) / 1_024).toFixed(1));
    const figures = {
      ...{ published, failed, failures, ...ends, lastEndS, running, growthMb },
      descriptors: [before.descriptors, after.descriptors],
      threads: [before.threads, after.threads],
    };
    const faults = faultsWhere({
      "publishes failed": failed > 0,
      "publishes without an end": ends.lost > 0,
      "ends told twice": ends.twice > 0,
      "sessions are left": running > 0,
      "memory grew": isLong && growthMb > GROWTH_LIMIT_MB,
      "descriptors are left": isLong && after.descriptors > before.descriptors + 5,
      "threads are left": isLong && after.threads > before.threads,
    });
    return { figures, faults };
  } finally {
    await server.stop();
  }
}

const sample = (pid) => ({ kb: residentKb(pid), descriptors: descriptors(pid), threads: threads(pid) });
