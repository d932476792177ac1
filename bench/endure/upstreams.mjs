// R6: an upstream that fails in every way, for streams that are also pushed or played elsewhere.
import { residentKb } from "../_process.mjs";
import { freePort, startNginx } from "../_servers.mjs";
import { wait } from "../_webhook.mjs";
import { FAULTS, startFaultyUpstream } from "./_faulty-upstream.mjs";
import { besideHonest, faultsWhere, startService } from "./_service.mjs";

export const title =
  "upstreams that refuse, reset, hang, stop reading, require a password, send random bytes, are slow";

const STREAMS = 20;
/** Duration of each fault. Within it twenty connections fail a hundred times, except refused ones, which are retried
 *  at the slower pace after a refusal. */
const SECONDS = 100;
/** Limit from the end of a fault until every stream is pushed again: the longest pause, a fifth more, and the start. */
const BACK_LIMIT_S = 45;
/** The same after a short fault, when the pauses are short too. */
const SOON_BACK_LIMIT_S = 12;
/** Limit of a subscriber's queue. */
const QUEUE_MB = 4;
const SLACK_MB = 40;

/** @type {(share: number) => Promise<{ figures: object; faults: string[] }>} */
export async function endure(share) {
  const kinds = share < 0.05 ? ["reset", "stopsReading"] : FAULTS;
  const seconds = Math.max(8, Math.round(SECONDS * share));
  const [count, backLimitS] = share < 0.05 ? [4, SOON_BACK_LIMIT_S] : [STREAMS, BACK_LIMIT_S];
  const nginx = await startNginx(await freePort());
  const [figures, faults] = [{}, []];
  try {
    for (const kind of kinds) {
      const server = await startService(count);
      const upstream = await startFaultyUpstream(kind, Number(nginx.target.split(":")[1]));
      try {
        for (const stream of server.streams) await server.pushTo(stream, upstream.port);
        const before = residentKb(server.pid);
        let peak = before;
        const watching = setInterval(() => {
          peak = Math.max(peak, residentKb(server.pid));
        }, 500);
        const time = seconds + backLimitS;
        const { balance, other } = await besideHonest(server, server.streams, time, async () => {
          await wait(seconds * 1_000);
          const failed = upstream.connections();
          const gaps = upstream.gaps();
          upstream.mend();
          const mended = performance.now();
          while (upstream.flowing() < count && performance.now() - mended < backLimitS * 1_000) await wait(200);
          return { failed, gaps, back: upstream.flowing(), backS: Math.round((performance.now() - mended) / 1_000) };
        });
        clearInterval(watching);
        const grownMb = Math.round((peak - before) / 1_024);
        figures[kind] = { ...other, sent: balance.sent, lost: balance.lost, grownMb };
        faults.push(
          ...faultsWhere({
            [`${kind}: neighbours lost ${balance.lost}`]: balance.lost > 0 || balance.corrupt > 0,
            [`${kind}: ${other.back} of ${count} are pushed again`]: other.back < count,
            [`${kind}: memory grew by ${grownMb} MB`]: grownMb > count * QUEUE_MB + SLACK_MB,
          }),
        );
      } finally {
        await server.stop();
        await upstream.stop();
      }
    }
  } finally {
    await nginx.stop();
  }
  return { figures, faults };
}
