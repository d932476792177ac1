// A node with many publishes dies beside others, which pull many streams meanwhile, with a delay on the way to
// PostgreSQL: how long until all ends are told, and how regular the heartbeats of the others are.
import { fork } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { query, startPostgres } from "../tools/cluster/postgres.mjs";
import { openPublishing } from "./_publishing.mjs";
import { startRecordingCustomer } from "./_recording-customer.mjs";
import { startSilentProxy } from "./_silent-proxy.mjs";
import { certificate, clock, wait } from "./_webhook.mjs";

/** @typedef {{
 *    readonly told: number;
 *    readonly events: number;
 *    readonly recordedMs: number;
 *    readonly endedMs: number;
 *    readonly ends: readonly number[];
 *    readonly beatMs: number;
 *    readonly gapMs: number;
 *    readonly lost: number;
 *    readonly cpuMs: number;
 *    readonly pulledBytes: number;
 *  }} Death */

const NODE = fileURLToPath(new URL("./_beating-node.mjs", import.meta.url));
const ORGANISATIONS = 10;
/** How long the ends are awaited, ms. */
const ENDS_LIMIT_MS = 60_000;
/** How long beats are watched before the death, ms. */
const BEFORE_MS = 8_000;

/** `publishes` of the node that dies; `survivors`: the others; `pulls` of each; `delayMs` to the database.
 *  @type {(of: {
 *    readonly publishes: number;
 *    readonly survivors: number;
 *    readonly pulls: number;
 *    readonly delayMs: number;
 *  }) => Promise<Death>} */
export async function measureDeath({ publishes, survivors, pulls, delayMs }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-deaths-"));
  const data = join(tmpdir(), `headgate-bench-postgres-${process.pid}`);
  const server = await startPostgres(data, { connections: 20 * (survivors + 2) });
  process.once("exit", server.kill);
  const socket = join(new URL(server.url).searchParams.get("host"), ".s.PGSQL.5432");
  const proxy = await startSilentProxy(socket, delayMs);
  const customer = await startRecordingCustomer();
  const url = `postgres://postgres@127.0.0.1:${proxy.port}${new URL(server.url).pathname}`;
  const nodes = [];
  try {
    await fill({ folder, server, customer, streams: publishes + survivors * pulls });
    for (let place = 0; place <= survivors; place += 1)
      nodes.push(await startNode({ place, folder, url, publishes, survivors, pulls }));
    const [dying, ...others] = nodes;
    await addPublishes({ server, customer, first: 1, count: publishes, epoch: dying.epoch });
    for (const [place, { epoch }] of others.entries()) {
      const first = publishes + place * pulls + 1;
      await addPublishes({ server, customer, first, count: pulls, epoch });
    }
    await wait(BEFORE_MS);
    const cpuBefore = await cpuOf(others);
    dying.child.kill("SIGKILL");
    const [row] = await query(server.url, `select beat_at from node where epoch = ${dying.epoch}`);
    const told = () =>
      [...customer.events.values()].filter((of) => of.some(({ call }) => call === "publish_done")).length;
    const limit = clock.now() + ENDS_LIMIT_MS;
    const open = async () => {
      const owned = `select 1 from publish where epoch = ${dying.epoch} and state = 'live' limit 1`;
      return (await query(server.url, owned)).length > 0;
    };
    while ((await open()) && clock.now() < limit) await wait(200);
    const recordedMs = clock.now() - Number(row.beat_at);
    while (told() < publishes && clock.now() < limit) await wait(50);
    const endedMs = clock.now() - Number(row.beat_at);
    const cpuMs = (await cpuOf(others)) - cpuBefore;
    await wait(BEFORE_MS); // what is repeated would arrive now
    const by = await query(server.url, "select epoch, count(*)::int as ends from outbox group by epoch order by epoch");
    return {
      told: told(),
      events: new Set([...customer.events.values()].flat().map(({ id }) => id)).size,
      recordedMs,
      endedMs,
      cpuMs,
      ends: by.map(({ ends }) => ends),
      beatMs: Math.max(...others.flatMap(({ beats }) => beats.map(({ tookMs }) => tookMs))),
      gapMs: Math.max(...others.flatMap(({ beats }) => beats.slice(1).map(({ at }, to) => at - beats[to].at))),
      lost: others.filter(({ isLost }) => isLost()).length,
      pulledBytes: Number((await query(server.url, "select sum(bytes_elsewhere) as sum from publish"))[0].sum),
    };
  } finally {
    for (const { child } of nodes) child.kill("SIGKILL");
    proxy.close();
    await customer.stop();
    await server.stop();
    process.off("exit", server.kill);
    rmSync(data, { recursive: true, force: true });
    rmSync(folder, { recursive: true, force: true });
  }
}

/** CPU time of these nodes so far, ms. */
async function cpuOf(nodes) {
  const times = nodes.map(({ child }) => {
    const answer = new Promise((resolve) => {
      const take = ({ cpuMs }) => {
        if (cpuMs === undefined) return;
        child.off("message", take);
        resolve(cpuMs);
      };
      child.on("message", take);
    });
    child.send("cpu");
    return answer;
  });
  return (await Promise.all(times)).reduce((sum, ms) => sum + ms, 0);
}

/** The tables, the organisations and their streams. */
async function fill({ folder, server, customer, streams }) {
  mkdirSync(join(folder, "0"));
  const gateway = await openPublishing({ nodeName: "first" }, join(folder, "0"), clock, server.url);
  const each = Math.ceil(streams / ORGANISATIONS);
  for (let at = 0; at < ORGANISATIONS; at += 1) await gateway.addOrganisation(`org${at}`, customer.url, each);
  await gateway.cluster.leave();
  await gateway.service.stop();
  await gateway.closeStore();
}

/** `count` publishes on the node of this epoch, from a client id and a stream on. */
async function addPublishes({ server, customer, first, count, epoch }) {
  await query(
    server.url,
    `insert into publish (client_id, organisation_id, stream_id, name, app, address, protocol, webhook, state, asked_at,
      accepted_at, bytes_in, bytes_out, epoch)
    select ${first} - 1 + row_number() over (order by id), organisation_id, id, name, 'live', '203.0.113.7', 'rtmp',
      '${customer.url}', 'live', 0, 0, 0, 0, ${epoch}
    from (select * from stream order by id offset ${first - 1} limit ${count}) as streams`,
  );
}

async function startNode({ place, folder, url, publishes, survivors, pulls }) {
  const dataDir = join(folder, String(place));
  if (!existsSync(dataDir)) mkdirSync(dataDir);
  if (place > 0) copyFileSync(join(folder, "0", "headgate.key"), join(dataDir, "headgate.key"));
  // Each pulls the streams of the next one.
  const pulled = JSON.stringify([publishes + (place % survivors) * pulls + 1, place === 0 ? 0 : pulls]);
  const child = fork(NODE, [`node${place}`, dataDir, url, certificate.cert, pulled]);
  const beats = [];
  let isLost = false;
  const epoch = await new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error("a node has exited")));
    child.on("message", (message) => {
      if (message.epoch !== undefined) resolve(message.epoch);
      if (message.lost) isLost = true;
      if (message.beat) beats.push({ at: performance.now(), ...message.beat });
    });
  });
  return { child, epoch, beats, isLost: () => isLost };
}
