// The day of an operator, with streams that are checked frame by frame and ports that are connected to all the time: an
// installation without a network, a first start, upgrades whose new process is killed at random moments, an upgrade to a
// broken version and to a good one, a full disk, steps of the clock, a database that is away, and the removal.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/_servers.mjs";
import { wait } from "../../bench/_webhook.mjs";
import { startPostgres } from "../cluster/postgres.mjs";
import { install } from "./installation.mjs";
import { smallDisk, steppedClock, storeTrouble } from "./trouble.mjs";
import { until, watch } from "./watch.mjs";

/** What a service's players and ports saw: the longest time between two answers of a ready service, in ms.
 *  @typedef {{
 *    readonly frames: number;
 *    readonly refused: number;
 *    readonly notReadyMs: number;
 *  }} Watched */

/** A new process is killed at most this long after the beginning of its upgrade, ms: before it listens, or after. */
const KILLED_WITHIN_MS = 5_000;

/** `reloads`: upgrades with a kill; `streams`: all of them published in the first process, to the end.
 *  @type {(options: {
 *    readonly reloads: number;
 *    readonly streams: number;
 *    readonly tell?: (text: string) => void;
 *  }) => Promise<
 *    Watched & {
 *      readonly reloads: number;
 *      readonly killed: number;
 *      readonly database: Watched;
 *      readonly wrong: readonly string[];
 *      readonly log: readonly string[];
 *    }
 *  >} */
export async function rehearseDay({ reloads, streams, tell = () => {} }) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-rehearse-"));
  // PostgreSQL runs as its own user.
  chmodSync(folder, 0o711);
  const wrong = [];
  const logs = [];
  const services = [];
  const cleanups = [];
  const data = ["data", "data-of-the-database"].map((name) => join(folder, name));
  const found = { reloads };

  /** Starts a service and watches it; `programs` runs its commands. */
  async function open(programs, watched) {
    const service = await programs.start();
    services.push(service);
    logs.push(service.log);
    return await watch(service, { apiKey: installed.apiKey, streams: watched, wrong });
  }

  let installed;
  try {
    installed = await install(folder);
    if (installed.asked.length > 0) wrong.push(`the installation asked for ${installed.asked.join(", ")}`);
    const disk = smallDisk(data[0]);
    if (disk === null) tell("no small disk, which needs root: no disk is filled");
    else cleanups.push(disk.unmount);
    const clock = steppedClock(join(folder, "clock"));
    const programs = installed.service(data[0], clock.environment);
    const watched = await open(programs, streams);
    tell("it was installed without a network, and runs");

    found.killed = await upgradeAndKill({ programs, service: services[0], watched, reloads, tell });
    await upgradeVersions({ installed, programs, watched, wrong });
    tell("a broken version was refused, and a good one runs");
    if (disk !== null) {
      await storeTrouble(watched, { what: "the disk was full", begin: disk.fill, end: disk.free, wrong });
      tell("the disk was full, and is not any more");
    }
    await clock.step(watched, wrong);
    tell("the clock has stepped");
    Object.assign(found, await watched.end());

    found.database = await loseDatabase({ installed, folder, dataDir: data[1], open, wrong, cleanups });
    tell("the database was away, and is back");
    await stop(services, wrong);
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
    const left = installed.remove(...data);
    if (left.length > 0) wrong.push(`after the removal there is still ${left.join(", ")}`);
    tell("it is removed");
    return { ...found, wrong, log: logs.flat() };
  } finally {
    // The oldest first: none of them is to replace another.
    for (const pid of services.flatMap(({ pids }) => pids())) kill(pid, "SIGKILL");
    for (const cleanup of cleanups.reverse()) await cleanup();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Upgrades whose new process is killed; returns how many were. */
async function upgradeAndKill({ programs, service, watched, reloads, tell }) {
  let killed = 0;
  for (let turn = 1; turn <= reloads; turn += 1) {
    const known = service.pids().length;
    const upgraded = programs.upgrade();
    await wait(Math.random() * KILLED_WITHIN_MS);
    const newest = service.pids()[known];
    if (newest !== undefined && kill(newest, "SIGKILL")) killed += 1;
    const { succeeded } = await upgraded;
    await watched.serves();
    await watched.tryPublish(`upgrade ${turn}`);
    const end = newest === undefined ? "before its process had started" : `process ${newest} was killed`;
    tell(`upgrade ${turn} ${succeeded ? "succeeded" : "failed"}: ${end}`);
  }
  return killed;
}

/** To a broken version, which is refused, and to a good one. */
async function upgradeVersions({ installed, programs, watched, wrong }) {
  const mend = installed.broken("dist/app.js", (text) => `${text}\nthrow new TypeError("a broken version");\n`);
  const broken = await programs.upgrade();
  mend();
  if (broken.succeeded || !broken.said.includes("a broken version")) wrong.push(`a broken version: ${broken.said}`);
  await watched.tryPublish("an upgrade to a broken version");
  const good = await programs.upgrade();
  if (!good.succeeded) wrong.push(`an upgrade failed: ${good.said}`);
  await watched.tryPublish("an upgrade");
}

/** A second service, whose PostgreSQL is killed and started again. */
async function loseDatabase({ installed, folder, dataDir, open, wrong, cleanups }) {
  const port = await freePort();
  const start = async () => {
    const settings = { listen_addresses: "127.0.0.1", port };
    return await startPostgres(join(folder, "postgres"), { connections: 40, settings });
  };
  let server = await start();
  cleanups.push(() => server.stop());
  const url = `postgres://postgres@127.0.0.1:${port}/headgate`;
  const watched = await open(installed.service(dataDir, { HEADGATE_DATABASE_URL: url }), 1);
  await storeTrouble(watched, {
    what: "the database was away",
    begin: () => server.stop(),
    end: async () => {
      server = await start();
    },
    wrong,
  });
  return await watched.end();
}

/** SIGTERM ends each of them cleanly, with every process of it. */
async function stop(services, wrong) {
  for (const { pids, exit } of services) {
    kill(pids().at(-1), "SIGTERM");
    const [code, signal] = await exit;
    if (code !== 0) wrong.push(`a service ended with ${code ?? signal}`);
    await until("its processes have ended", () => pids().every((pid) => !kill(pid, 0)));
  }
}

function kill(pid, signal) {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}
