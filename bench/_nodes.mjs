// What nodes, and publishes on them, cost PostgreSQL: complete gateways on one server, with media cores that only
// count. The server itself counts its statements (pg_stat_statements).
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { watchStore } from "../dist/store/health.js";
import { keepPruned } from "../dist/store/retention.js";
import { keepTokenKeys } from "../dist/token/keys.js";
import { query, startPostgres } from "../tools/cluster/postgres.mjs";
import { openPublishing, SNAPSHOT } from "./_publishing.mjs";
import { clock, startCustomer, wait } from "./_webhook.mjs";

/** @typedef {{
 *    readonly statements: number;
 *    readonly rows: number;
 *    readonly walBytes: number;
 *    readonly ms: number;
 *  }} Cost */
/** @typedef {{
 *    readonly nodes: number;
 *    readonly nodeRowBytes: number;
 *    readonly costs: { readonly node: Cost; readonly start: Cost; readonly second: Cost; readonly end: Cost };
 *  }} Measured */

/** The default. */
const UPDATE_S = 30;
/** Publish requests in flight on each node. */
const AT_A_TIME = 20;
/** Longer than any decision takes, so that late ones are measured and not denied. */
const DEADLINE_MS = 30_000;
/** Interval at which each node reads the rows of all nodes, seconds (READ_EVERY_MS of membership.ts). */
const READ_S = 1;
/** Database connections of a node: a pool for its work, one for its signs of life, and one that holds its name. */
const CONNECTIONS = 20;
/** Traffic of each stream, for its counters. */
const BYTES_PER_S = 250_000;
const TRACKS = {
  video: { codec: "H264", width: 1_280, height: 720 },
  audio: { codec: "AAC", sampleRate: 48_000, channels: 2 },
};

/** The costs of a node-second without publishes (`node`), and of a publish's `start`, `second` and `end`.
 *  @type {(options: {
 *    nodes: number;
 *    publishes: number;
 *    seconds: number;
 *    updateS?: number;
 *  }) => Promise<Measured & { readonly busiest: readonly { readonly text: string; readonly calls: number }[] }>} */
export async function measureNodes({ nodes, publishes, seconds, updateS = UPDATE_S }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-nodes-"));
  const forget = () => rmSync(folder, { recursive: true, force: true });
  const leave = () => process.exit(130);
  process.once("SIGINT", leave);
  const settings = { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.track_utility": "on" };
  const customer = await startCustomer("ok");
  const data = join(tmpdir(), `headgate-bench-postgres-${process.pid}`);
  const server = await startPostgres(data, { connections: CONNECTIONS * nodes + 20, settings });
  process.once("exit", server.kill);
  const open = [];
  try {
    await query(server.url, "create extension pg_stat_statements");
    for (let place = 0; place < nodes; place += 1) open.push(await openNode({ place, folder, server, updateS }));
    for (const [place, { gateway }] of open.entries())
      await gateway.addOrganisation(`node${place}`, customer.url, publishes);
    return await measure(open, server, { publishes, seconds });
  } finally {
    for (const node of open) await node.close();
    await server.stop();
    customer.stop();
    process.off("exit", server.kill);
    process.off("SIGINT", leave);
    rmSync(data, { recursive: true, force: true });
    forget();
  }
}

/** Starts a node as main.ts does, but without ports. */
async function openNode({ place, folder, server, updateS }) {
  const dataDir = join(folder, String(place));
  mkdirSync(dataDir);
  if (place > 0) copyFileSync(join(folder, "0", "headgate.key"), join(dataDir, "headgate.key"));
  const startedAt = clock.now();
  const snapshotOf = () => ({
    ...SNAPSHOT,
    bytesIn: Math.round(((clock.now() - startedAt) / 1_000) * BYTES_PER_S),
    tracks: TRACKS,
  });
  const settings = { deadlineMs: DEADLINE_MS, updateS, snapshotOf, nodeName: `bench-${place}` };
  const gateway = await openPublishing(settings, dataDir, clock, server.url);
  const { cluster, db, log, publishing, service } = gateway;
  const days = { publishes: 90, audit: 400, deliveries: 30, denied: 7 };
  const stops = [
    keepTokenKeys(service.tokenKeys, { clock, log }),
    keepPruned({ db, days: () => days, clock, log }),
    watchStore({ db, folder: null, log }).stop,
  ];
  cluster.start({
    status: () => ({
      ...{ channel: "http://192.0.2.1:8091", http: "http://192.0.2.1:8080", rtmp: "rtmp://192.0.2.1:1935/live" },
      ...{ publishes: publishing.running().length, load: 0.25 },
    }),
    async alive() {},
    lost: publishing.abandon,
    gone: (share) => publishing.takeOver("node_lost", share),
  });
  return {
    gateway,
    async close() {
      for (const stop of stops) await stop();
      await cluster.leave();
      await gateway.close();
    },
  };
}

async function measure(open, server, { publishes, seconds }) {
  const all = publishes * open.length;
  const counted = async (act) => {
    await query(server.url, "select pg_stat_statements_reset()");
    const startedAt = performance.now();
    await act();
    const tookS = (performance.now() - startedAt) / 1_000;
    return { tookS, ...(await asked(server.url)) };
  };
  const idle = await counted(() => wait(seconds * 1_000));
  const node = scaled(idle.sum, 1 / (idle.tookS * open.length));
  const ofNodes = (tookS) => scaled(node, tookS * open.length);

  const running = [];
  const starting = await counted(async () => {
    await Promise.all(
      open.map(async ({ gateway }, place) => running.push([gateway, await startAll(gateway, place, publishes)])),
    );
  });
  const steady = await counted(() => wait(seconds * 1_000));
  const [row] = await query(server.url, "select avg(pg_column_size(node.*))::float8 as bytes from node");
  const ending = await counted(async () => {
    for (const [gateway, ids] of running) for (const id of ids) gateway.end(id, { bytesIn: 1_000_000, bytesOut: 0 });
    await open[0].gateway.recorded();
    while ((await open[0].gateway.owed()) > 0) await wait(100);
  });
  const second = scaled(minus(steady.sum, ofNodes(steady.tookS)), 1 / (steady.tookS * all));
  /** Subtracts what running publishes cost while others start and end. */
  const without = (phase, share) =>
    scaled(minus(minus(phase.sum, ofNodes(phase.tookS)), scaled(second, phase.tookS * all * share)), 1 / all);
  return {
    nodes: open.length,
    nodeRowBytes: row.bytes,
    costs: { node, start: without(starting, 0.5), second, end: without(ending, 0) },
    busiest: steady.statements.map((of) => ({ text: of.text, ...scaled(of, 1 / steady.tookS) })),
    tookS: { start: starting.tookS, end: ending.tookS },
  };
}

/** Starts the publishes of one node and returns their client ids. */
async function startAll(gateway, place, publishes) {
  const ids = [];
  let next = 0;
  const some = async () => {
    while (next < publishes) {
      next += 1;
      const { allowed, clientId, description } = await gateway.request(`node${place}-${next - 1}`);
      if (!allowed) throw new Error(`a publish was denied: ${description}`);
      ids.push(clientId);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, some));
  return ids;
}

/** The server's statements since the reset, except the one that asks for them; the most frequent first. */
async function asked(url) {
  const rows = await query(
    url,
    `select query as text, calls::float8, rows::float8, wal_bytes::float8 as "walBytes", total_exec_time as ms
     from pg_stat_statements where query not like '%pg_stat_statements%' and query not like '%count(*)%as "o%'
     order by calls desc`,
  );
  const sum = { statements: 0, rows: 0, walBytes: 0, ms: 0 };
  for (const { calls, rows: some, walBytes, ms } of rows) {
    sum.statements += calls;
    sum.rows += some;
    sum.walBytes += walBytes;
    sum.ms += ms;
  }
  return { statements: rows, sum };
}

/** What `streams` publishes on `nodes` nodes, each lasting `lastingS` seconds, cost per second.
 *  @type {(measured: Measured, at: { nodes: number; streams: number; lastingS: number }) => Readonly<
 *    Record<"statements" | "rows" | "nodeRows" | "nodeRowBytes" | "walBytes" | "cores" | "connections", number>
 *  >} */
export function extrapolate({ nodes: measured, nodeRowBytes, costs }, { nodes, streams, lastingS }) {
  const { node, start, second, end } = costs;
  const perSecond = (what) => nodes * node[what] + streams * (second[what] + (start[what] + end[what]) / lastingS);
  /** Each node reads the rows of all nodes. */
  const nodeRows = (nodes * nodes) / READ_S;
  return {
    statements: perSecond("statements"),
    rows: perSecond("rows") - (nodes * measured) / READ_S + nodeRows,
    nodeRows,
    nodeRowBytes: nodeRows * nodeRowBytes,
    walBytes: perSecond("walBytes"),
    cores: perSecond("ms") / 1_000,
    connections: nodes * CONNECTIONS,
  };
}

const scaled = (of, factor) =>
  Object.fromEntries(
    Object.entries(of).flatMap(([key, value]) => (typeof value === "number" ? [[key, value * factor]] : [])),
  );
const minus = (of, other) =>
  Object.fromEntries(Object.entries(of).map(([key, value]) => [key, value - (other[key] ?? 0)]));
