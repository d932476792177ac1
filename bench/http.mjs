// Web tokens over HTTP: `npm run bench -- http [SECONDS CONNECTIONS] [--against DIR]`, by default `10 50`. Half of the
// requests issue, half verify; every token is verified once, so that no result can be cached. The service has no rate
// limit and one core: requests are reported per CPU second of the whole process with all its threads, followed by a
// breakdown. With another checkout the two alternate, and the ratio of their medians is reported.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { generateKeyPair, jwtVerify, SignJWT } from "jose";
import { Pool } from "undici";
import { root } from "../scripts/build.mjs";
import { readAgainst, resultOf } from "./_against.mjs";
import { cpuSeconds } from "./_process.mjs";

const DEFAULTS = [10, 50];
/** Requests before the measurement: V8 is still compiling for about that many, which is start-up and not service. */
const WARM_REQUESTS = 20_000;
const SPLIT_ROUNDS = 6_000;
/** Performance goal: requests per second of one core. */
const GOAL = 5_500;

/** Measurements of each checkout if there are two. */
const BLOCKS = 5;

export async function bench(words) {
  const { against, rest } = readAgainst(words);
  const [seconds, connections] = rest.length >= 2 ? rest.map(Number) : DEFAULTS;
  if (against === null) {
    const result = await measure(root, seconds, connections);
    console.log(JSON.stringify({ ...result, goal: GOAL }));
    console.log(JSON.stringify(await split(result.cpuPerRequestUs, connections)));
    return;
  }
  const servers = [
    { name: "this", folder: root, costs: [] },
    { name: "the other", folder: against, costs: [] },
  ];
  for (let block = 0; block < BLOCKS; block += 1) {
    for (const { folder, costs } of servers) {
      costs.push((await measure(folder, seconds, connections)).cpuPerRequestUs / 1_000);
    }
  }
  console.log(resultOf(...servers));
}

/** CPU time per request of the service in `checkout`. */
async function measure(checkout, seconds, connections) {
  const apiKey = "bench-key-bench-key-bench-key";
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const program = `await (await import(${JSON.stringify(join(checkout, "dist", "cli", "main.js"))})).run(["serve"])`;
  const service = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: checkout,
    env: {
      PATH: process.env.PATH,
      HEADGATE_DATA_DIR: folder,
      HEADGATE_HTTP_HOST: "127.0.0.1",
      HEADGATE_HTTP_PORT: "0",
      HEADGATE_RTMP_PORT: "0",
      HEADGATE_MEDIA_PORT: "0",
      HEADGATE_METRICS_PORT: "0",
      HEADGATE_BOOTSTRAP_API_KEY: apiKey,
      HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
      HEADGATE_LOG_LEVEL: "warn",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const { http } = await ready(service);
    const pool = new Pool(http, { connections, pipelining: 1 });
    await load(pool, apiKey, connections, { requests: WARM_REQUESTS });
    const before = cpuSeconds(service.pid);
    const { requests, latencies, tookS } = await load(pool, apiKey, connections, { seconds });
    const cpu = cpuSeconds(service.pid) - before;
    await pool.close();
    latencies.sort((a, b) => a - b);
    const percentile = (share) => Number(latencies[Math.floor(latencies.length * share)]?.toFixed(1));
    return {
      requests,
      perSecond: Math.round(requests / tookS),
      cpuPerRequestUs: Math.round((cpu / requests) * 1e6),
      perCpuSecond: Math.round(requests / cpu),
      p50Ms: percentile(0.5),
      p99Ms: percentile(0.99),
    };
  } finally {
    service.kill("SIGTERM");
    await new Promise((resolve) => service.once("exit", resolve));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function ready(service) {
  for await (const line of createInterface(service.stdout)) {
    if (line.startsWith('{"ready":true')) return JSON.parse(line);
  }
  throw new Error("the service did not start");
}

/** Issues tokens and then verifies them, on every connection, until the time is over or enough requests are made. */
async function load(
  pool,
  apiKey,
  connections,
  { seconds = Number.POSITIVE_INFINITY, requests = Number.POSITIVE_INFINITY },
) {
  const latencies = [];
  const from = performance.now();
  const until = from + seconds * 1000;
  const ask = async (path, headers, body) => {
    const started = performance.now();
    const answer = await pool.request({ path, method: "POST", headers, body: JSON.stringify(body) });
    const json = await answer.body.json();
    latencies.push(performance.now() - started);
    if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${JSON.stringify(json)}`);
    return json;
  };
  const type = { "content-type": "application/json" };
  const worker = async (number) => {
    for (let count = 0; performance.now() < until && latencies.length < requests; count += 1) {
      const subject = { streamname: `Ab1Cd-${number}?n=${count}`, ingesturl: "rtmp://in.example/live" };
      const { data } = await ask("/webcaster", { ...type, "x-service-apikey": apiKey }, subject);
      await ask("/webcaster/verify", type, { token: data.token });
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, number) => worker(number)));
  return { requests: latencies.length, latencies, tookS: (performance.now() - from) / 1000 };
}

/** CPU time of signing and of verifying alone, done as the service does it and with the same concurrency, µs: the
 *  floor. The rest is HTTP, routing, JSON and the store. */
async function split(requestUs, atOnce) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const sign = () =>
    new SignJWT({ a: "b" }).setProtectedHeader({ alg: "ES256" }).setExpirationTime("1h").sign(privateKey);
  const token = await sign();
  const signUs = await cpuOf(sign, atOnce);
  const verifyUs = await cpuOf(() => jwtVerify(token, publicKey, { algorithms: ["ES256"] }), atOnce);
  const cryptoUs = Math.round((signUs + verifyUs) / 2);
  return { signUs, verifyUs, cryptoPerRequestUs: cryptoUs, restPerRequestUs: requestUs - cryptoUs };
}

async function cpuOf(act, atOnce) {
  const rounds = async (count) => {
    let left = count;
    const worker = async () => {
      for (; left > 0; await act()) left -= 1;
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };
  await rounds(SPLIT_ROUNDS);
  const before = process.cpuUsage();
  await rounds(SPLIT_ROUNDS);
  const { user, system } = process.cpuUsage(before);
  return Math.round((user + system) / SPLIT_ROUNDS);
}
