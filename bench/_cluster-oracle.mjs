// Random publishes of a few names over several nodes that are killed and paused meanwhile; afterwards the store and the
// customer's events are checked: no name was live twice, and every accepted publish ended once.
import { fork } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { query, startPostgres } from "../tools/cluster/postgres.mjs";
import { faultsOf, startRecordingCustomer } from "./_recording-customer.mjs";
import { certificate, wait } from "./_webhook.mjs";

const CONNECTIONS = 20;
/** Publish requests in flight. */
const AT_A_TIME = 30;
/** A request to a node that is paused or dying is abandoned after this, ms. */
const ANSWER_LIMIT_MS = 8_000;
/** How long a node is paused, ms: longer than its lease. */
const PAUSE_MS = 14_000;
const DOWN_MS = 1_000;
/** Pause between two faults, ms. */
const CALM_MS = 3_000;
/** Limit until everything has ended and is delivered, ms: a lease, its takeover, and the retry of what dead nodes
 *  had begun. */
const SETTLE_LIMIT_MS = 90_000;
/** Times are taken slightly before the write that they belong to, ms. */
const TOLERANCE_MS = 1_000;

/** `faults`: their number, alternately kills and pauses.
 *  @type {(options: { nodes: number; names: number; publishes: number; faults: number }) => Promise<{
 *    readonly allowed: number;
 *    readonly denied: number;
 *    readonly unanswered: number;
 *    readonly ended: number;
 *    readonly done: number;
 *    readonly repeated: number;
 *    readonly lost: number;
 *    readonly wrong: readonly string[];
 *    readonly twice: readonly string[];
 *    readonly left: number;
 *  }>} */
export async function runOracle({ nodes, names, publishes, faults }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-oracle-"));
  const customer = await startRecordingCustomer();
  const data = join(tmpdir(), `headgate-oracle-postgres-${process.pid}`);
  const server = await startPostgres(data, { connections: CONNECTIONS * nodes + 20 });
  const running = [];
  const placeOf = (place) => join(folder, String(place));
  let key = 0;
  /** Requests that are not answered, by key: a node that was paused answers after its caller has left. */
  const waiting = new Map();
  const liveFrom = new Map();
  let stopping = false;

  async function startNode(place) {
    mkdirSync(placeOf(place), { recursive: true });
    const keyFile = join(placeOf(0), "headgate.key");
    if (place > 0 && existsSync(keyFile)) copyFileSync(keyFile, join(placeOf(place), "headgate.key"));
    const child = fork(
      join(import.meta.dirname, "_cluster-node.mjs"),
      [`n${place}`, placeOf(place), server.url, certificate.cert],
      {
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      },
    );
    child.on("message", (answer) => {
      if (answer.allowed) liveFrom.set(answer.clientId, Date.now());
      waiting.get(answer.key)?.resolve(answer);
      waiting.delete(answer.key);
    });
    child.on("error", () => {}); // such as a request to a node that was just killed
    const ready = new Promise((resolve) => child.once("message", resolve));
    await Promise.race([ready, once(child, "exit").then(() => Promise.reject(new Error("a node did not start")))]);
    running[place] = child;
  }

  async function request(place, stream) {
    key += 1;
    const mine = key;
    const answered = new Promise((resolve) => {
      if (!running[place].connected) return;
      waiting.set(mine, { place, resolve });
      running[place].send({ key: mine, stream }, () => {});
    });
    return (await Promise.race([answered, wait(ANSWER_LIMIT_MS)])) ?? null;
  }

  async function fault(at) {
    const place = at % nodes;
    const child = running[place];
    if (at % 2 === 0) {
      child.kill("SIGKILL");
      await once(child, "exit");
      await wait(DOWN_MS);
      for (const [lost, { place: of }] of waiting) if (of === place) waiting.delete(lost);
      await startNode(place);
    } else {
      child.kill("SIGSTOP");
      await wait(PAUSE_MS);
      child.kill("SIGCONT");
    }
  }

  try {
    for (let place = 0; place < nodes; place += 1) await startNode(place);
    await query(
      server.url,
      `insert into organisation (id, hash, name, plan, enabled, webhook, created_at, updated_at)
       values ('o', 'Ab1Cd', 'Oracle', 'paid', 1, '${customer.url}', 0, 0)`,
    );
    await query(
      server.url,
      `insert into stream (id, organisation_id, name, state, tags, created_at, updated_at)
       select 's' || at, 'o', 'Ab1Cd-' || at, 'created', '[]', 0, 0 from generate_series(1, ${names}) as at`,
    );
    const outcomes = { allowed: 0, denied: 0, unanswered: 0 };
    let asked = 0;
    const some = async () => {
      while (asked < publishes) {
        asked += 1;
        const stream = `Ab1Cd-${1 + Math.floor(Math.random() * names)}`;
        const answer = await request(Math.floor(Math.random() * nodes), stream);
        outcomes[answer === null ? "unanswered" : answer.allowed ? "allowed" : "denied"] += 1;
        if (answer === null) await wait(100);
      }
    };
    const faulty = (async () => {
      for (let at = 0; at < faults && !stopping; at += 1) {
        await wait(CALM_MS);
        await fault(at);
      }
    })();
    await Promise.all([...Array.from({ length: AT_A_TIME }, some), faulty]);
    const open = async () => {
      const [{ live, owed }] = await query(
        server.url,
        `select (select count(*)::int from publish where state in ('asking', 'live')) as live,
          (select count(*)::int from outbox where delivered_at is null and given_up_at is null) as owed`,
      );
      return live + owed + waiting.size;
    };
    for (let waited = 0; (await open()) > 0 && waited < SETTLE_LIMIT_MS; waited += 200) await wait(200);
    return { ...outcomes, ...(await judged(server.url, customer.events, liveFrom)), left: await open() };
  } finally {
    stopping = true;
    for (const child of running) child.kill("SIGKILL");
    await customer.stop();
    await server.stop();
    for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
  }
}

/** Names that were live twice at one moment, with their publishes. */
function overlaps(lives) {
  return lives.flatMap((one) =>
    lives
      .filter((other) => other.name === one.name && other.id > one.id)
      .filter((other) => one.since < other.until - TOLERANCE_MS && other.since < one.until - TOLERANCE_MS)
      .map((other) => `${one.name}: ${one.id} and ${other.id}`),
  );
}

/** `liveFrom`: when each publish was reported live, by client id; the store's time may precede a wait. */
async function judged(url, events, liveFrom) {
  const rows = await query(url, "select client_id::int as id, state from publish");
  const ended = rows.filter(({ state }) => state === "ended").map(({ id }) => [id, null]);
  const denied = rows.filter(({ state }) => state === "denied");
  const { done, repeated, wrong } = faultsOf(events, new Map(ended));
  for (const { id } of denied) {
    if ((events.get(id) ?? []).some(({ call }) => call === "publish_done")) wrong.push(`${id}: denied, and ended`);
  }
  const twice = overlaps(
    await query(
      url,
      `select name, client_id::int as id, accepted_at::float8 as since, ended_at::float8 as until
       from publish where accepted_at is not null and ended_at is not null order by name`,
    ).then((lives) => lives.map((live) => ({ ...live, since: liveFrom.get(live.id) ?? live.since }))),
  );
  const [{ lost }] = await query(url, "select count(*)::int as lost from publish where end_reason = 'node_lost'");
  return { ended: ended.length, done, repeated, wrong, twice, lost };
}
