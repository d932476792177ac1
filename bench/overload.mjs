// Three times as many set-ups as a node has room for, beside running streams: `npm run bench -- overload [--seconds 60]
// [--streams 20] [--rate 180] [--load 90] [--times 5]`. Honest RTMP streams, half pushed and half played, run while
// WHIP offers come at a steady rate; admitted ones stay for five seconds. Reports which frames the streams lost, how
// fast the others were refused, and how soon after the crowd an offer is admitted again (R11). With a lower `--load`,
// at least half a percent per stream, the node is full because its worker is busy.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Pool } from "undici";
import { root } from "../scripts/build.mjs";
import { honestLoad } from "./_clip.mjs";
import { machine } from "./_machine.mjs";
import { threadSeconds } from "./_process.mjs";
import { freePort, generatorFault, runLoad, startHeadgate } from "./_servers.mjs";
import { percentile } from "./_webhook.mjs";

const OFFER = readFileSync(join(root, "test", "fixtures", "offers", "chromium-156.sdp"));
/** How long an admitted session stays, ms. */
const STAYS_MS = 5_000;
/** Goals of R11, ms. */
const REFUSAL_LIMIT_MS = 50;
const RECOVERY_LIMIT_MS = 5_000;
/** Streams per offer a second, so that none is offered while its last session is still ending: an offer may wait four
 *  seconds for its set-up. */
const NAMES_PER_RATE = 12;
/** Connections of the crowd: enough that no offer waits for another's answer. */
const CONNECTIONS = 2_048;
/** Offers before the crowd: what Node compiles for the first ones is not counted. */
const WARM = { rate: 100, forMs: 8_000 };
const PROBE_EVERY_MS = 100;
/** Limit of the wait for an answer after the crowd, ms. */
const PROBE_LIMIT_MS = 30_000;

export async function bench(words) {
  const { values } = parseArgs({
    args: words,
    options: {
      seconds: { type: "string", default: process.env.SECONDS ?? "60" },
      streams: { type: "string", default: "20" },
      rate: { type: "string", default: "180" },
      load: { type: "string", default: "90" },
      times: { type: "string", default: "5" },
    },
  });
  const [seconds, streams, rate, times] = [values.seconds, values.streams, values.rate, values.times].map(Number);
  const rows = [];
  for (let time = 0; time < times; time += 1) {
    rows.push(await measure({ seconds, streams, rate, load: values.load }));
    console.log(JSON.stringify(rows.at(-1)));
  }
  console.table(rows, [
    "lost of sent",
    "alone p99 ms",
    "p99 ms",
    "let in",
    "refused",
    "p50",
    "p99",
    "back ms",
    "verdict",
  ]);
  console.log(`  ${machine()}`);
  if (rows.some(({ verdict }) => verdict !== "held")) process.exitCode = 1;
}

export async function measure({ seconds, streams, rate, load }) {
  const sinkPort = await freePort();
  const env = {
    HEADGATE_LIMITS_LOAD_PERCENT: load,
    HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND: "0",
    HEADGATE_LIMITS_WHIP_HALF_OPEN: "0",
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
  };
  const server = await startHeadgate(sinkPort, streams + rate * NAMES_PER_RATE, { push: false, env });
  const pool = new Pool(`http://${server.http}`, { connections: CONNECTIONS });
  try {
    const honest = server.streams.slice(0, streams);
    for (const stream of honest.filter((_, at) => at % 2 === 0)) await server.pushTo(stream, sinkPort);
    const names = honest.map(({ name }) => name);
    const others = server.streams.slice(streams).map(({ name }) => name);
    let crowd = null;
    const run = async (time, measuring) => {
      const args = await honestLoad(server, names, { sinkPort, seconds: time });
      const probe = () => threadSeconds(server.pid, "media-");
      return await runLoad(args, probe, { onLine: (line) => line === "measuring" && measuring(), preempts: true });
    };
    // New connections would be limited as well: the honest streams begin first, then the crowd.
    const alone = load === "90" ? (await run(10, () => {})).balance : null;
    await startCrowd(pool, server, others.slice(-WARM.rate * NAMES_PER_RATE), WARM);
    const { balance } = await run(seconds, () => {
      crowd = startCrowd(pool, server, others, { rate, forMs: seconds * 1_000 - STAYS_MS });
    });
    const { letIn, refusals, odd } = await crowd;
    const backMs = await recovery(pool, server, others[0]);
    const late = generatorFault(balance);
    const p50 = percentile(refusals, 0.5);
    const p99 = percentile(refusals, 0.99);
    const lost = balance.lost + balance.misplaced + balance.corrupt + balance.publishers_closed;
    const held = lost === 0 && odd.length === 0 && refusals.length > 0 && p99 <= REFUSAL_LIMIT_MS;
    return {
      "lost of sent": `${balance.lost} / ${balance.sent}`,
      "alone p99 ms": alone?.video_delay_p99_ms ?? null,
      "p99 ms": balance.video_delay_p99_ms,
      "crowd s": seconds - STAYS_MS / 1_000,
      "let in": letIn,
      refused: refusals.length,
      p50: Number(p50.toFixed(1)),
      p99: Number(p99.toFixed(1)),
      max: Number(percentile(refusals, 1).toFixed(1)),
      "back ms": backMs,
      odd: odd.slice(0, 3),
      noise: late,
      verdict: held && backMs <= RECOVERY_LIMIT_MS ? "held" : late === null ? "FAILED" : `noisy: ${late}`,
    };
  } finally {
    await pool.close();
    await server.stop();
  }
}

/** Offers at a steady rate; resolves with how many were admitted, and how long each refusal took, ms. */
async function startCrowd(pool, server, names, { rate, forMs }) {
  const seen = { letIn: 0, refusals: [], odd: [] };
  const underWay = new Set();
  const began = performance.now();
  for (let at = 0; performance.now() - began < forMs; at += 1) {
    const waitMs = began + (at * 1_000) / rate - performance.now();
    if (waitMs > 1) await pause(waitMs);
    const one = offer(pool, server, names[at % names.length])
      .then(async ({ status, tookMs, retryAfter, session }) => {
        if (status === 201) {
          seen.letIn += 1;
          await pause(STAYS_MS);
          await remove(pool, session);
        } else if (status === 503 && retryAfter !== undefined) seen.refusals.push(tookMs);
        else seen.odd.push(status);
      })
      .finally(() => underWay.delete(one));
    underWay.add(one);
  }
  await Promise.all(underWay);
  return seen;
}

/** How long after the crowd an offer is admitted, ms. */
async function recovery(pool, server, name) {
  const began = performance.now();
  while (performance.now() - began < PROBE_LIMIT_MS) {
    const { status, session } = await offer(pool, server, name);
    if (status === 201) {
      await remove(pool, session);
      break;
    }
    await pause(PROBE_EVERY_MS);
  }
  return Math.round(performance.now() - began);
}

async function offer(pool, server, name) {
  const query = new URLSearchParams({ stream_name: name, stream_url: server.streamUrl });
  const headers = { "content-type": "application/sdp" };
  const began = performance.now();
  const answer = await pool.request({ path: `/p/webrtc?${query}`, method: "POST", headers, body: OFFER });
  await answer.body.dump();
  const tookMs = performance.now() - began;
  const { location } = answer.headers;
  const session = location === undefined ? null : new URL(String(location)).pathname;
  return { status: answer.statusCode, tookMs, retryAfter: answer.headers["retry-after"], session };
}

async function remove(pool, session) {
  const ended = await pool.request({ path: session, method: "DELETE" });
  await ended.body.dump();
}
