// R10: SIGTERM while streams are live and new ones arrive.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { wait } from "../_webhook.mjs";
import { besideHonest, endsOf, faultsWhere, startService } from "./_service.mjs";

export const title = "drain by SIGTERM with 50 streams while new ones arrive";

const DRAINS = 20;
const STREAMS = 50;
const DRAIN_S = 8;
/** Measured during the drain: the load's warm-up of 6 s comes before it. */
const MEASURED_S = 4;
const REFUSED_LIMIT_MS = 50;
/** Limit until the first offer is refused, ms: the signal may not have arrived yet. */
const NOTICED_MS = 250;
const OFFER = readFileSync(join(root, "test", "fixtures", "offers", "chromium-156.sdp"), "utf8");

export async function endure(share) {
  const drains = Math.max(1, Math.round(DRAINS * share));
  const streams = Math.max(4, Math.round(STREAMS * Math.min(1, share * 20)));
  const [refusals, exits, faults] = [[], [], []];
  let [units, lost] = [0, 0];
  for (let at = 0; at < drains; at += 1) {
    const server = await startService(streams + 1, { HEADGATE_DRAIN_S: String(DRAIN_S) });
    const spare = server.streams[streams].name;
    const exit = once(server.process, "exit");
    const { balance, other } = await besideHonest(
      server,
      server.streams.slice(0, streams),
      MEASURED_S,
      // After the warm-up, so that the measurement takes place while the service drains.
      async () => {
        await wait(6_000);
        server.process.kill("SIGTERM");
        await wait(NOTICED_MS);
        return await offers(server, spare, MEASURED_S * 1_000 - 2 * NOTICED_MS);
      },
    );
    const [code] = await exit;
    exits.push(code);
    refusals.push(...other);
    units += balance.sent;
    lost += balance.lost;
    const ends = endsOf(server.customer);
    faults.push(
      ...faultsWhere({
        [`drain ${at}: exit ${code}`]: code !== 0,
        [`drain ${at}: ${ends.lost} of ${ends.publishes} without an end`]: ends.lost > 0,
      }),
    );
    await server.customer.stop();
  }
  const times = refusals.map(({ ms }) => ms).sort((a, b) => a - b);
  const p99 = times[Math.floor(times.length * 0.99)] ?? 0;
  const wrong = refusals.filter(({ status, retryAfter }) => status !== 503 || retryAfter === null);
  faults.push(
    ...faultsWhere({
      [`an offer was answered ${wrong[0]?.status}`]: wrong.length > 0,
      [`refused after ${p99} ms`]: p99 > REFUSED_LIMIT_MS,
      "running streams lost units": lost > 0,
    }),
  );
  return { figures: { drains, streams, units, lost, refused: times.length, refusedP99Ms: p99, exits }, faults };
}

/** Sends offers one after another for `ms`; returns how each was answered. */
async function offers({ http, streamUrl }, name, ms) {
  const answers = [];
  const until = performance.now() + ms;
  while (performance.now() < until) {
    const asked = performance.now();
    const where = new URLSearchParams({ stream_name: name, stream_url: streamUrl });
    const answer = await fetch(`http://${http}/p/webrtc?${where}`, {
      ...{ method: "POST", headers: { "content-type": "application/sdp" }, body: OFFER },
    });
    await answer.text();
    const took = Math.round(performance.now() - asked);
    answers.push({ status: answer.status, retryAfter: answer.headers.get("retry-after"), ms: took });
    await wait(20);
  }
  return answers;
}
