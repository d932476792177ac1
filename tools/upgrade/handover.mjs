// One service replaced by a new process again and again, with streams checked frame by frame, players that come and go,
// and publishes that begin and end; afterwards the output and the customer's events are checked.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { endingWithUs } from "../../bench/_ending.mjs";
import { faultsOf, startRecordingCustomer } from "../../bench/_recording-customer.mjs";
import { freePort, program } from "../../bench/_servers.mjs";
import { certificate, wait } from "../../bench/_webhook.mjs";
import { root } from "../../scripts/build.mjs";
import { startNode } from "../cluster/node.mjs";
import { startPostgres } from "../cluster/postgres.mjs";
import { publish } from "./broadcasters.mjs";
import { untilWithin } from "./until.mjs";

/** Pause between the end of an upgrade and the next one, ms. */
const PAUSE_MS = 2_000;
/** Number of short publishes at a time, and how long each lasts, s. */
const PASSING = 2;
const PASSING_S = 6;
/** Limit until the last of the former processes has ended and the customer has got the last event, ms. */
const LEAVE_LIMIT_MS = 60_000;
const until = untilWithin(LEAVE_LIMIT_MS);
/** Members of a load's result that must be 0. */
const NONE = [
  ...["lost", "misplaced", "corrupt", "publishers_closed", "closed_early", "visit_lost", "visit_misplaced"],
  ...["visit_corrupt", "visit_unexpected", "visit_silent"],
];

/** `upgrades`: their number, and `seconds` for each, during which the loads are measured; `streams` by RTMP, and
 *  `whip` more by WHIP; `store`: embedded or postgres. */
export async function rehearseHandover({
  upgrades,
  seconds: secondsEach,
  streams,
  whip,
  players,
  store,
  tell = () => {},
}) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-handover-"));
  // PostgreSQL's user cannot enter the folder.
  const data = join(tmpdir(), `headgate-handover-postgres-${process.pid}`);
  const customer = await startRecordingCustomer();
  const postgres = store === "postgres" ? await startPostgres(data, { connections: 100 }) : null;
  writeFileSync(join(folder, "ca.pem"), certificate.cert);
  const apiKey = "upgrade-key-upgrade-key-upgrade";
  const log = [];
  const wrong = [];
  const takenMs = [];
  const settings = {
    HEADGATE_WEBHOOK_CA: join(folder, "ca.pem"),
    HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0",
    HEADGATE_LIMITS_WHIP_REQUESTS_PER_SECOND: "0",
    HEADGATE_LIMITS_WHIP_HALF_OPEN_PER_ADDRESS: "0",
    HEADGATE_PUBLIC_ADDRESSES: "127.0.0.1",
    HEADGATE_DRAIN_S: "86400",
    // A refusal because the machine is busy would have nothing to do with upgrades.
    HEADGATE_LIMITS_LOAD_PERCENT: "0",
    HEADGATE_LOG_FORMAT: "json",
  };
  const shared = { folder, databaseUrl: postgres?.url, apiKey, password: "upgrade-password", settings };
  const node = await startNode(1, { ...shared, log: (line) => void log.push(line) });
  const pids = [node.pid];
  let isOver = false;
  let passed = 0;

  async function call(method, path, body) {
    const headers = { "x-service-apikey": apiKey, "content-type": "application/json", connection: "close" };
    const answer = await fetch(node.http + path, { method, headers, body: body && JSON.stringify(body) });
    if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return await answer.json();
  }

  async function newStream(sink = null) {
    const { id, ingest } = await call("POST", "/stream");
    const name = ingest.rtmp.streamname;
    if (sink !== null) await call("POST", `/stream/${id}/upstream`, { url: `rtmp://127.0.0.1:${sink}/live/${name}` });
    return name;
  }

  /** A load of the generator: its output lines, and its result at the end. */
  async function load(count, wordsOf) {
    const sink = await freePort();
    const names = [];
    while (names.length < count) names.push(await newStream(sink));
    const child = endingWithUs(
      spawn(program(), wordsOf(`127.0.0.1:${sink}`, names.join(",")), { stdio: ["ignore", "pipe", "inherit"] }),
    );
    const heard = new Set();
    let balance = null;
    createInterface(child.stdout).on("line", (line) => {
      if (line.startsWith("{")) balance = JSON.parse(line);
      else heard.add(line);
    });
    const ended = once(child, "exit");
    return {
      begins: () => until("the load is measured", () => heard.has("measuring") || child.exitCode !== null),
      isMeasured: () => heard.has("measured") || child.exitCode !== null,
      async account() {
        await ended;
        return balance ?? { failed: true };
      },
    };
  }

  async function upgrade() {
    const began = performance.now();
    const env = { PATH: process.env.PATH, HEADGATE_DATA_DIR: join(folder, node.name) };
    const command = [join(root, "scripts", "headgate.mjs"), "upgrade", "--json"];
    const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root, env });
    pids.push(JSON.parse(stdout).pid);
    takenMs.push(Math.round(performance.now() - began));
  }

  async function pass() {
    while (!isOver) {
      const name = await newStream().catch(({ message }) => void wrong.push(message));
      if (name === undefined) continue;
      const broadcaster = publish(`${node.rtmp}/${name}`, PASSING_S);
      if ((await broadcaster.exit) !== 0) wrong.push(`a publish failed: ${broadcaster.complaint()}`);
      passed += 1;
    }
  }

  try {
    await call("PUT", "/organisation/webhook", { webhook: customer.url });
    const seconds = String(upgrades * secondsEach);
    const [rtmpAt, httpAt] = [new URL(node.rtmp).host, new URL(node.http).host];
    const loads = [
      await load(streams, (sink, names) => ["honest", sink, rtmpAt, names, seconds, "recorded", String(players)]),
    ];
    if (whip > 0) {
      const url = new URL("/live", node.rtmp).href;
      loads.push(await load(whip, (sink, names) => ["whip", sink, httpAt, url, names, seconds, "opus", "gcm"]));
    }
    for (const each of loads) await each.begins();
    tell(`${streams} streams by RTMP, ${whip} by WHIP, ${players} players`);
    const passing = Array.from({ length: PASSING }, pass);
    while (takenMs.length < upgrades && !loads.some((each) => each.isMeasured())) {
      await upgrade().catch(({ stderr, message }) => void wrong.push(`an upgrade failed: ${stderr || message}`));
      if (wrong.length > 0) break;
      tell(`upgrade ${takenMs.length}: process ${pids.at(-1)}, ${takenMs.at(-1)} ms`);
      await wait(PAUSE_MS);
    }
    if (takenMs.length < upgrades) wrong.push(`${takenMs.length} upgrades while the loads were measured`);
    const accounts = [];
    for (const each of loads) accounts.push(await each.account());
    isOver = true;
    await Promise.all(passing);
    await until("the former processes leave", () => pids.slice(0, -1).every((pid) => !isThere(pid)));
    const told = () => faultsOf(customer.events, new Map([...customer.events.keys()].map((id) => [id, null])));
    await until("every end is told", () => told().wrong.length === 0).catch(() => {});
    for (const account of accounts) {
      for (const name of NONE) if (account[name] > 0) wrong.push(`${name}: ${account[name]}`);
      if (account.failed) wrong.push("a load failed");
    }
    const { done, repeated, wrong: events } = told();
    const asked = [...customer.events.values()].map((all) => all.filter(({ call: of }) => of === "publish").length);
    if (repeated > 0) wrong.push(`${repeated} publish_done events came twice`);
    if (asked.some((count) => count !== 1)) wrong.push("a publish was asked about twice, or never");
    const [rtmp, byWhip = null] = accounts.map(({ lost_units: _, ...rest }) => rest);
    return { upgrades: takenMs.length, takenMs, passed, done, rtmp, whip: byWhip, wrong: [...wrong, ...events], log };
  } finally {
    isOver = true;
    for (const pid of pids) isThere(pid) && process.kill(pid, "SIGKILL");
    await customer.stop();
    await postgres?.stop();
    for (const each of [folder, data]) rmSync(each, { recursive: true, force: true });
  }
}

function isThere(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
