// How long a command takes through the node that has the publish, and through another one: `npm run bench -- commands
// [ROUNDS]`, by default 500. Two nodes and PostgreSQL on this machine, one request at a time, alternating between the
// two ways. A round opens a WHIP session without media, lists the upstreams of its stream, sends a trickle ICE fragment
// and ends it. There is no network between nodes on one machine: its round trip must be added.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { root } from "../scripts/build.mjs";
import { startNode } from "../tools/cluster/node.mjs";
import { startPostgres } from "../tools/cluster/postgres.mjs";
import { percentile } from "./_webhook.mjs";

const ROUNDS = 500;
/** Rounds before the measurement, because V8 is still compiling. */
const WARM_ROUNDS = 50;
/** Goal for the p99 through the other node on one network, ms. */
const GOAL_MS = 20;
const OFFER = readFileSync(join(root, "test", "fixtures", "offers", "chromium-156.sdp"), "utf8");
const WAYS = ["right", "wrong"];

export async function bench([rounds = ROUNDS]) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-commands-"));
  const data = join(tmpdir(), `headgate-commands-postgres-${process.pid}`);
  const postgres = await startPostgres(data, { connections: 60 });
  const apiKey = "bench-key-bench-key-bench-key";
  const none = ["WHIP_REQUESTS", "WHIP_OFFERS", "API_REQUESTS"].map((of) => `HEADGATE_LIMITS_${of}_PER_SECOND`);
  const settings = { ...Object.fromEntries(none.map((name) => [name, "0"])), HEADGATE_LOG_LEVEL: "warn" };
  const shared = { folder, databaseUrl: postgres.url, apiKey, password: "bench-password", settings };
  const nodes = [];
  try {
    for (const place of [1, 2]) nodes.push(await startNode(place, shared));
    report(await measure(nodes, apiKey, Number(rounds)));
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
    await postgres.stop();
    for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
  }
}

/** Command → way → duration of each request, ms. */
async function measure(nodes, apiKey, rounds) {
  const pools = nodes.map(({ http }) => new Pool(http, { connections: 1, pipelining: 1 }));
  const took = {};
  async function ask(pool, method, path, { headers = {}, body, status }) {
    const startedAt = performance.now();
    const answer = await pool.request({ method, path, headers, body });
    const text = await answer.body.text();
    if (answer.statusCode !== status) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`);
    return { tookMs: performance.now() - startedAt, headers: answer.headers, text };
  }

  async function round(at, isMeasured) {
    const owner = at % 2;
    const way = WAYS[Math.floor(at / 2) % 2];
    const asked = pools[way === "right" ? owner : 1 - owner];
    const key = { "x-service-apikey": apiKey };
    const { text } = await ask(pools[owner], "POST", "/stream", { headers: key, status: 200 });
    const { id, ingest } = JSON.parse(text);
    const query = new URLSearchParams({ stream_name: ingest.rtmp.streamname, stream_url: nodes[owner].rtmp });
    const sdp = { headers: { "content-type": "application/sdp" }, body: OFFER, status: 201 };
    const { headers } = await ask(pools[owner], "POST", `/p/webrtc?${query}`, sdp);
    const session = new URL(headers.location, nodes[owner].http).pathname;
    const [, ufrag, pwd] = /a=ice-ufrag:(\S+)\s+a=ice-pwd:(\S+)/.exec(OFFER) ?? [];
    const fragment = `a=ice-ufrag:${ufrag}\r\na=ice-pwd:${pwd}\r\na=end-of-candidates\r\n`;
    const tagged = { "content-type": "application/trickle-ice-sdpfrag", "if-match": headers.etag };
    for (const [name, method, path, call] of [
      ["GET, the stream's upstreams", "GET", `/stream/${id}/upstream`, { headers: key, status: 200 }],
      ["PATCH, a WHIP session", "PATCH", session, { headers: tagged, body: fragment, status: 204 }],
      ["DELETE, a WHIP session", "DELETE", session, { status: 200 }],
    ]) {
      const { tookMs } = await ask(asked, method, path, call);
      took[name] ??= { right: [], wrong: [] };
      if (isMeasured) took[name][way].push(tookMs);
    }
  }

  for (let at = 0; at < WARM_ROUNDS; at += 1) await round(at, false);
  for (let at = 0; at < 2 * rounds; at += 1) await round(at, true);
  await Promise.all(pools.map((pool) => pool.close()));
  return took;
}

function report(took) {
  console.log("| Command | Through | Requests | p50, ms | p99, ms | slowest, ms |\n|---|---|---|---|---|---|");
  for (const [name, ways] of Object.entries(took)) {
    for (const way of WAYS) {
      const times = [0.5, 0.99, 1].map((share) => percentile(ways[way], share).toFixed(2));
      console.log(`| ${[name, `the ${way} node`, ways[way].length, ...times].join(" | ")} |`);
    }
  }
  const wrong = Object.values(took).flatMap((ways) => ways.wrong);
  console.log(`p99 of all through the wrong node: ${percentile(wrong, 0.99).toFixed(2)} ms, goal ${GOAL_MS}`);
}
