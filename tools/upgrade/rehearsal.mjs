// Nodes of one version replaced by nodes of another, one by one and under load; afterwards it is checked what
// customers, broadcasters, players and API callers got.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { faultsOf, startRecordingCustomer } from "../../bench/_recording-customer.mjs";
import { certificate, wait } from "../../bench/_webhook.mjs";
import { startNode } from "../cluster/node.mjs";
import { query, startPostgres } from "../cluster/postgres.mjs";
import { gapsIn, play, publish } from "./broadcasters.mjs";
import { untilWithin } from "./until.mjs";

/** Number of short publishes at a time, and how long each lasts, seconds. */
const PASSING = 3;
const PASSING_S = 3;
/** Interval between two rounds of requests to the nodes, ms. */
const ASKED_EVERY_MS = 250;
/** Limit of every wait, ms. */
const LIMIT_MS = 60_000;
const until = untilWithin(LIMIT_MS);
/** Duration of a play through another node, seconds. */
const PLAYED_S = 2;

/** `before`, `after`: built checkouts; `streams`: running on each node all the time; `calmMs`: between two
 *  replacements.
 *  @type {(options: {
 *    before: string;
 *    after: string;
 *    nodes: number;
 *    streams: number;
 *    calmMs: number;
 *    tell?: (text: string) => void;
 *  }) => Promise<{
 *    readonly replaced: number;
 *    readonly requests: number;
 *    readonly refused: number;
 *    readonly passing: number;
 *    readonly watched: number;
 *    readonly frames: number;
 *    readonly commands: number;
 *    readonly takenS: readonly number[];
 *    readonly tables: string;
 *    readonly accepted: number;
 *    readonly done: number;
 *    readonly repeated: number;
 *    readonly reasons: Readonly<Record<string, number>>;
 *    readonly wrong: readonly string[];
 *    readonly log: readonly string[];
 *  }>} */
export async function rehearse({ before, after, nodes: count, streams, calmMs, tell = () => {} }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-upgrade-"));
  const data = join(tmpdir(), `headgate-upgrade-postgres-${process.pid}`);
  const customer = await startRecordingCustomer();
  const postgres = await startPostgres(data, { connections: 20 * count + 20 });
  writeFileSync(join(folder, "ca.pem"), certificate.cert);
  const apiKey = "upgrade-key-upgrade-key-upgrade";
  const log = [];
  const wrong = [];
  const counts = { replaced: 0, requests: 0, refused: 0, passing: 0, watched: 0, frames: 0, commands: 0, takenS: [] };
  const settings = {
    HEADGATE_WEBHOOK_CA: join(folder, "ca.pem"),
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
  };
  const shared = { folder, databaseUrl: postgres.url, apiKey, password: "upgrade-password", settings };
  const start = (place, checkout) => startNode(place, { ...shared, checkout, log: (line) => void log.push(line) });
  /** By place: the node, what it runs, and whether a load balancer sends it publishes and requests. */
  const running = [];
  const watched = new Set();
  let isOver = false;

  async function call(node, method, path, body) {
    const headers = { "x-service-apikey": apiKey, "content-type": "application/json", connection: "close" };
    const answer = await fetch(node.http + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`${method} ${path} at ${node.name}: ${answer.status} ${text}`);
    return JSON.parse(text);
  }

  async function newStream(node) {
    const { id, ingest } = await call(node, "POST", "/stream");
    return { id, name: ingest.rtmp.streamname };
  }

  const sessionOf = async (node, name) =>
    (await call(node, "GET", "/session")).find(({ streamname, bytes_in }) => streamname === name && bytes_in > 0);

  /** A stream on a node that runs until `end`, with a player of it on the same node. */
  async function watch(place) {
    const { node } = running[place];
    const stream = await newStream(node);
    const broadcaster = publish(`${node.rtmp}/${stream.name}`);
    const session = await until(`${stream.name} is live`, () => sessionOf(node, stream.name));
    const player = play(`${node.rtmp}/${stream.name}`);
    const each = { place, stream, clientId: session.client_id, broadcaster, player };
    watched.add(each);
    broadcaster.exit.then(() => {
      if (watched.has(each)) wrong.push(`${stream.name} of ${node.name} ended: ${broadcaster.complaint()}`);
    });
  }

  /** Its broadcaster ends, or its node does. */
  async function unwatch(each, end) {
    watched.delete(each);
    await end();
    await Promise.all([each.broadcaster.exit, each.player.exit]);
    const times = each.player.times();
    counts.watched += 1;
    counts.frames += times.length;
    if (times.length === 0) wrong.push(`${each.stream.name}: nothing was played; ${each.player.complaint()}`);
    for (const [from, to] of gapsIn(times)) wrong.push(`${each.stream.name}: nothing from ${from} to ${to} ms`);
  }

  /** Publishes on one ready node after another. */
  async function pass() {
    while (!isOver) {
      const ready = running.filter(({ takesPublishes }) => takesPublishes);
      const { node } = ready[Math.floor(Math.random() * ready.length)];
      const stream = await newStream(node).catch(({ message }) => void wrong.push(message));
      if (stream === undefined) continue;
      const broadcaster = publish(`${node.rtmp}/${stream.name}`, PASSING_S);
      const code = await broadcaster.exit;
      counts.passing += 1;
      // If its node was stopped meanwhile, only the end of the publish must be reported.
      if (code !== 0 && running.some((each) => each.node === node && each.takesPublishes))
        wrong.push(`a publish on ${node.name} failed: ${broadcaster.complaint()}`);
    }
  }

  /** Sends requests to every node that a load balancer would use: about its own publishes and those of others. */
  async function ask() {
    // New connections, because a node may be closing an idle one.
    const headers = { "x-service-apikey": apiKey, connection: "close" };
    while (!isOver) {
      const paths = ["/session", ...[...watched].map(({ clientId }) => `/session/${clientId}`)];
      for (const { node, takesRequests } of running) {
        for (const path of takesRequests ? paths : []) {
          const answer = await fetch(node.http + path, { headers }).catch((error) => error);
          counts.requests += 1;
          if (answer instanceof Error) {
            if (running.some((each) => each.node === node && each.takesRequests))
              wrong.push(`GET ${path} at ${node.name}: ${answer.cause ?? answer}`);
            continue;
          }
          await answer.text();
          if (answer.status < 500) continue;
          counts.refused += 1;
          if (answer.headers.get("retry-after") === null)
            wrong.push(`GET ${path} at ${node.name}: ${answer.status} without Retry-After`);
        }
      }
      await wait(ASKED_EVERY_MS);
    }
  }

  /** Sends each node requests about a publish of every other version: shown, played, ended. */
  async function command() {
    const pairs = running.flatMap((via) => running.map((of) => [via, of]));
    const others = pairs.filter(([via, of]) => via !== of && (via.checkout !== of.checkout || before === after));
    for (const [via, of] of others) {
      const what = `${of.node.name} through ${via.node.name}`;
      try {
        const { name } = await newStream(of.node);
        const broadcaster = publish(`${of.node.rtmp}/${name}`);
        const { client_id: id } = await until(`${name} is live`, () => sessionOf(via.node, name));
        if ((await call(via.node, "GET", `/session/${id}`)).client_id !== id) wrong.push(`${what}: another publish`);
        const player = play(`${via.node.rtmp}/${name}`, PLAYED_S);
        await player.exit;
        if (player.times().length === 0) wrong.push(`${what}: nothing was played; ${player.complaint()}`);
        await call(via.node, "POST", `/session/${id}/kick`);
        await until(`${name} has ended`, () => broadcaster.code() !== null);
        counts.commands += 3;
      } catch (error) {
        wrong.push(`${what}: ${error.message}`);
      }
    }
  }

  /** Replaces a node as an operator does: drain, stop, start the newer version. */
  async function replace(place) {
    const old = running[place];
    const startedAt = performance.now();
    old.takesPublishes = false;
    // Commands need the database schema of their own version.
    const checkout = place === 0 ? before : after;
    await promisify(execFile)(
      process.execPath,
      [join(checkout, "scripts", "headgate.mjs"), "nodes", "drain", old.node.name],
      {
        cwd: checkout,
        env: {
          PATH: process.env.PATH,
          HEADGATE_DATA_DIR: join(folder, old.node.name),
          HEADGATE_DATABASE_URL: postgres.url,
        },
      },
    );
    const readiness = async () => await (await fetch(`${old.node.metrics}/readyz`)).text();
    await until(`${old.node.name} drains`, async () => /draining/.test(await readiness()));
    old.takesRequests = false;
    const own = [...watched].filter((each) => each.place === place);
    const stopped = old.node.stop();
    await Promise.all(own.map((each) => unwatch(each, () => stopped)));
    await stopped;
    const node = await start(place + 1, after);
    running[place] = { node, checkout: after, takesPublishes: true, takesRequests: true };
    for (let each = 0; each < streams; each += 1) await watch(place);
    counts.replaced += 1;
    counts.takenS.push(Number(((performance.now() - startedAt) / 1_000).toFixed(1)));
    tell(`${node.name} is replaced`);
  }

  try {
    for (let place = 0; place < count; place += 1) {
      const node = await start(place + 1, before);
      running.push({ node, checkout: before, takesPublishes: true, takesRequests: true });
    }
    await call(running[0].node, "PUT", "/organisation/webhook", { webhook: customer.url });
    for (let each = 0; each < count * streams; each += 1) await watch(each % count);
    tell(`${count} nodes with ${watched.size} streams`);
    const load = [ask(), ...Array.from({ length: PASSING }, pass)];
    await wait(calmMs);
    for (let place = 0; place < count; place += 1) {
      await replace(place);
      await command();
      await wait(calmMs);
    }
    isOver = true;
    await Promise.all(load);
    await Promise.all([...watched].map((each) => unwatch(each, () => each.broadcaster.end())));
    const [{ version }] = await query(postgres.url, "select max(name) as version from migration");
    return { ...counts, tables: version, ...(await ends()), wrong, log };
  } finally {
    isOver = true;
    await Promise.all(running.map(({ node }) => node.stop()));
    await customer.stop();
    await postgres.stop();
    for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
  }

  /** Compares the customer's events with the store. */
  async function ends() {
    const isSettled = async () => {
      const [{ left }] = await query(
        postgres.url,
        `select (select count(*) from publish where state in ('asking', 'live'))
          + (select count(*) from outbox where delivered_at is null and given_up_at is null) as left`,
      );
      return Number(left) === 0;
    };
    await until("every end is told", isSettled).catch((error) => void wrong.push(error.message));
    const rows = await query(
      postgres.url,
      "select client_id::int as id, name, end_reason from publish where accepted_at is not null order by client_id",
    );
    const told = faultsOf(customer.events, new Map(rows.map(({ id }) => [id, null])));
    wrong.push(...told.wrong);
    for (const { id, name } of rows) {
      for (const { call: what, fields } of customer.events.get(id) ?? [])
        if (fields.get("name") !== name) wrong.push(`${id}: ${what} names ${fields.get("name")} in place of ${name}`);
    }
    const reasons = {};
    for (const { end_reason: reason } of rows) reasons[reason] = (reasons[reason] ?? 0) + 1;
    return { accepted: rows.length, done: told.done, repeated: told.repeated, reasons };
  }
}
