// Reliability R2: publishes that come and go.
import { descriptors, residentKb, threads } from "../_process.mjs";
import { wait } from "../_webhook.mjs";
import { endsOf, faultsWhere, heapMb, load, startService, untilAllEnded } from "./_service.mjs";

export const title = "publishes of one second, ended by DELETE, by a close, or by silence";

const PUBLISHES = 20_000;
/** Parts of a long run: memory that each publish leaves behind grows in every part, and what only the first ones need
 *  does not. */
const PARTS = 4;
/** Publishes in parallel. Each name is reused only after the silence of 30 s that ends a WHIP publish. */
const AT_ONCE = 60;
const NAMES = 3_000;
/** Publishes before the measurement: what Node compiles and keeps for the first ones is not counted. */
const WARM_SHARE = 0.1;
const END_LIMIT_S = 60;
const GROWTH_LIMIT_MB = 20;
/** V8 releases the memory of a burst only after a while. */
const SETTLE_MS = 30_000;

/** @type {(share: number) => Promise<{ figures: object; faults: string[] }>} */
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
    const samples = [await sample(server)];
    const counts = { published: 0, failed: 0, failures: [] };
    let lastEndS = 0;
    const parts = isLong ? PARTS : 1;
    for (let part = 0; part < parts; part += 1) {
      const { published, failed, failures } = await churn(Math.round(publishes / parts));
      counts.published += published;
      counts.failed += failed;
      counts.failures.push(...failures);
      lastEndS = Math.max(lastEndS, await untilAllEnded(server.customer, END_LIMIT_S));
      if (isLong) await wait(SETTLE_MS);
      samples.push(await sample(server));
    }
    const { length: running } = await server.call("GET", "/session");
    const ends = endsOf(server.customer);
    const [before, after] = [samples.at(0), samples.at(-1)];
    const growthMb = Number((after.residentMb - before.residentMb).toFixed(1));
    const figures = {
      ...{ ...counts, ...ends, lastEndS, running, growthMb },
      memory: samples.map(({ residentMb, heapMb }) => `${residentMb} MB, ${heapMb} of them JavaScript's heap`),
      descriptors: [before.descriptors, after.descriptors],
      threads: [before.threads, after.threads],
    };
    const faults = faultsWhere({
      "publishes failed": counts.failed > 0,
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

async function sample({ pid, metrics }) {
  return {
    residentMb: Number((residentKb(pid) / 1_024).toFixed(1)),
    heapMb: await heapMb(metrics),
    descriptors: descriptors(pid),
    threads: threads(pid),
  };
}
