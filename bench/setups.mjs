// WHIP publishes that begin and end: `npm run bench -- setups [SECONDS CONNECTIONS BLOCKS] [--against DIR]`, by default
// `10 20 5`. Each is a POST with a browser's offer, a webhook over HTTPS that answers 200, a DELETE and its
// publish_done; no media. Reports the CPU time of the whole service for each, and how long its POST took. Another
// checkout alternates with this one.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { root } from "../scripts/build.mjs";
import { readAgainst, resultOf } from "./_against.mjs";
import { cpuSeconds } from "./_process.mjs";
import { LOAD_CORE, startHeadgate } from "./_servers.mjs";
import { certificate, percentile, startCustomer } from "./_webhook.mjs";

const DEFAULTS = [10, 20, 5];
/** Publishes before the measurement: V8 is still compiling for about that many. */
const WARM = 3_000;
/** Streams of each connection, used in turn, so that a publish has ended before its stream is published again. */
const STREAMS = 8;
const OFFER = readFileSync(join(root, "test", "fixtures", "offers", "chromium-156.sdp"));

export async function bench(words) {
  const { against, rest } = readAgainst(words);
  const [seconds, connections, blocks] = rest.length >= 3 ? rest.map(Number) : DEFAULTS;
  const servers = [{ name: "this", costs: [] }];
  if (against !== null) servers.push({ name: "the other", from: against, costs: [] });
  for (let block = 0; block < blocks; block += 1) {
    for (const { name, from, costs } of block % 2 === 0 ? servers : [...servers].reverse()) {
      const result = await measure(from, seconds, connections);
      console.log(JSON.stringify({ name, ...result }));
      costs.push(result.cpuMs);
    }
  }
  if (against !== null) console.log(resultOf(...servers));
}

async function measure(from, seconds, connections) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-setups-"));
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, certificate.cert);
  const customer = await startCustomer("ok", LOAD_CORE);
  const env = { HEADGATE_WEBHOOK_CA: ca, HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND: "0" };
  const server = await startHeadgate(1, connections * STREAMS, { push: false, env, ...(from && { from }) });
  try {
    await server.call("PUT", "/organisation/webhook", { webhook: customer.url });
    const pool = new Pool(`http://${server.http}`, { connections });
    await load(pool, server, { publishes: WARM });
    const before = cpuSeconds(server.pid);
    const { count, times, tookS } = await load(pool, server, { seconds });
    const cpu = cpuSeconds(server.pid) - before;
    await pool.close();
    return {
      publishes: count,
      perSecond: Math.round(count / tookS),
      cpuMs: Number(((cpu * 1_000) / count).toFixed(3)),
      perCpuSecond: Math.round(count / cpu),
      p50Ms: Number(percentile(times, 0.5).toFixed(1)),
      p99Ms: Number(percentile(times, 0.99).toFixed(1)),
    };
  } finally {
    await server.stop();
    customer.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Each connection starts and ends publishes of its own streams, until the time is over or there are enough.
 *  */
async function load(pool, server, { seconds = Number.POSITIVE_INFINITY, publishes = Number.POSITIVE_INFINITY }) {
  const times = [];
  const from = performance.now();
  const until = from + seconds * 1_000;
  const one = async (_, connection) => {
    for (let at = 0; performance.now() < until && times.length < publishes; at += 1) {
      const { name } = server.streams[connection * STREAMS + (at % STREAMS)];
      const query = new URLSearchParams({ stream_name: name, stream_url: server.streamUrl });
      const began = performance.now();
      const headers = { "content-type": "application/sdp" };
      const made = await pool.request({ path: `/p/webrtc?${query}`, method: "POST", headers, body: OFFER });
      const answer = await made.body.text();
      if (made.statusCode !== 201) throw new Error(`POST: ${made.statusCode} ${answer}`);
      times.push(performance.now() - began);
      const ended = await pool.request({ path: new URL(made.headers.location).pathname, method: "DELETE" });
      await ended.body.dump();
      if (ended.statusCode !== 200) throw new Error(`DELETE: ${ended.statusCode}`);
    }
  };
  await Promise.all(Array.from({ length: server.streams.length / STREAMS }, one));
  return { count: times.length, times, tookS: (performance.now() - from) / 1_000 };
}
