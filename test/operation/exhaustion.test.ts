// A service that runs out of a resource refuses new work and says why, continues running work, and recovers
// by itself: the running service with few file descriptors, little memory and a disk that cannot be written.
// `EXHAUSTED_S` sets the duration (R12); the full disk is in store-failures.test.ts.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { mediaPasses } from "../support/drop-outs.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, type HeadgateOptions, startHeadgate } from "../support/headgate.ts";
import { pause } from "../support/pause.ts";
import { inWholeRun } from "../support/whole-run.ts";

const EXHAUSTED_MS = Number(process.env.EXHAUSTED_S ?? 3) * 1_000;
const WAIT_MS = 60_000;
const OFFER = readFileSync(new URL("../fixtures/offers/chromium-156.sdp", import.meta.url), "utf8");

/** Called at the end of the test, last one first. */
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}, WAIT_MS);

interface Stage {
  readonly headgate: Headgate;
  readonly customer: Customer;
  /** The publish that runs before the resource is short. */
  readonly encoder: Broadcast;
  /** The name of a stream that nothing is published to. */
  readonly spare: string;
}

async function open(options: HeadgateOptions): Promise<Stage> {
  const customer = await startCustomer();
  cleanups.push(() => customer.close());
  const headgate = await startHeadgate({ customer, ...options });
  cleanups.push(() => headgate.process.kill("SIGKILL"));
  const name = await headgate.newStream();
  const spare = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 900 });
  cleanups.push(() => encoder.kill("SIGKILL"));
  await until("the publish runs", () => headgate.process.stderr().includes("publish started"));
  return { headgate, customer, encoder, spare };
}

async function readyz({ headgate }: Stage): Promise<string> {
  return await (await fetch(`${headgate.metrics}/readyz`, { headers: { connection: "close" } })).text();
}

async function offer({ headgate, spare }: Stage): Promise<Response> {
  const headers = { "content-type": "application/sdp", connection: "close" };
  return await fetch(headgate.whip(spare), { method: "POST", headers, body: OFFER });
}

const sessions = async ({ headgate }: Stage) =>
  (await headgate.call("GET", "/session")) as unknown as readonly { readonly client_id: number }[];

/** Seconds of processor time so far. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** New work is refused in time with a reason, and the running stream continues. */
async function isFull(stage: Stage, code: string, said: RegExp): Promise<void> {
  const { headgate, customer, spare } = stage;
  const asked = customer.calls("publish").length;
  const [session] = await sessions(stage);
  if (session === undefined) throw new Error("the publish runs");
  const answer = await offer(stage);
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, expect.stringMatching(/^\d+$/)]);
  expect(await answer.json()).toMatchObject({ code });
  const refused = broadcast(`${headgate.rtmp}/${spare}`, { seconds: 20 });
  expect(await refused.exit).not.toBe(0);
  expect(refused.stderr()).toMatch(said);
  await mediaPasses(headgate, session, EXHAUSTED_MS);
  expect(customer.calls("publish")).toHaveLength(asked);
  expect(headgate.process.stderr()).not.toContain("publish ended");
}

/** Everything works as before, and the end of the publish reaches its customer. */
async function isWell(stage: Stage): Promise<void> {
  const { headgate, customer, encoder, spare } = stage;
  await until("ready", async () => (await readyz(stage)) === "ready\n", WAIT_MS);
  const next = broadcast(`${headgate.rtmp}/${spare}`, { seconds: 900 });
  cleanups.push(() => next.kill("SIGKILL"));
  await until("the next publish runs", () => headgate.process.stderr().split("publish started").length === 3);
  encoder.kill("SIGKILL");
  await until("its end is delivered", () => customer.calls("publish_done").length === 1, WAIT_MS);
}

test(
  "with 256 descriptors and hundreds of idle connections streams continue, and new clients are told why they are refused",
  async () => {
    const stage = await open({ within: ["prlimit", "--nofile=256:256"] });
    const { port, hostname } = new URL(stage.headgate.rtmp);
    const sockets: Socket[] = [];
    const fill = () => {
      for (const socket of sockets.splice(0)) if (!socket.destroyed) sockets.push(socket);
      while (sockets.length < 130) sockets.push(connect(Number(port), hostname).on("error", () => {}));
    };
    const filledSince = performance.now();
    const filling = setInterval(fill, 200);
    cleanups.push(() => clearInterval(filling));
    await until("full", async () => /^not ready: full: \d+ of \d+ /.test(await readyz(stage)), WAIT_MS);
    await isFull(stage, "full", /full; try again in a moment/);
    // Beyond the last descriptor connections are closed, without a busy loop.
    clearInterval(filling);
    for (let more = 0; more < 300; more += 1) sockets.push(connect(Number(port), hostname).on("error", () => {}));
    const before = cpuSeconds(stage.headgate.process.pid);
    await pause(2_000); // the CPU time of two seconds is measured
    expect(cpuSeconds(stage.headgate.process.pid) - before).toBeLessThan(1);
    for (const socket of sockets) socket.destroy();
    const filledMs = performance.now() - filledSince;
    await isWell(stage);
    // Idle connections are closed after ten seconds, and others take their place: how often depends on how long the steps
    // above took, and on a busy machine the number of connections swings about the limit.
    const told = stage.headgate.process.stderr().match(/"msg":"full: /g) ?? [];
    expect(told.length).toBeGreaterThan(0);
    expect(told.length).toBeLessThanOrEqual(2 + filledMs / 5_000);
  },
  180_000 + EXHAUSTED_MS,
);

inWholeRun(
  "a control group with little memory left stops new work until more is free",
  async () => {
    const group = memoryGroup();
    if (group === null) return await isFullFromTheStart();
    // Half of it: what the service allocates meanwhile must not get it killed.
    const stage = await open({ within: group.within, env: { HEADGATE_LIMITS_MEMORY_PERCENT: "50" } });
    group.limit(Math.round(group.used() * 1.7));
    await until("full", async () => /^not ready: full: \d+ of \d+ MB of memory /.test(await readyz(stage)), WAIT_MS);
    await isFull(stage, "full", /full; try again in a moment/);
    group.limit(2e9);
    await isWell(stage);
  },
  180_000 + EXHAUSTED_MS,
);

inWholeRun(
  "an unwritable data directory stops new work and no live stream, and loses no end",
  async () => {
    const stage = await open({});
    const { pid } = stage.headgate.process;
    // Like a file system that became read-only: no file grows, and none can be created.
    const files = (limit: string) => execFileSync("prlimit", ["--pid", String(pid), `--fsize=${limit}:unlimited`]);
    files("0");
    await until("not ready", async () => /^not ready: (?!full)/.test(await readyz(stage)), WAIT_MS);
    await isFull(stage, "store_unavailable", /Temporarily unavailable/);
    // The publish ends while nothing can be written.
    stage.encoder.kill("SIGKILL");
    await until(
      "its end is kept",
      () => stage.headgate.process.stderr().includes("could not be recorded yet"),
      WAIT_MS,
    );
    expect(stage.customer.calls("publish_done")).toEqual([]);
    files("unlimited");
    await isWell(stage);
  },
  180_000 + EXHAUSTED_MS,
);

inWholeRun(
  "a log that cannot be written because its disk is full ends nothing",
  async () => {
    const customer = await startCustomer();
    cleanups.push(() => customer.close());
    // A password that could not be shown would end the start.
    const env = { HEADGATE_BOOTSTRAP_ADMIN_PASSWORD: "correct horse battery" };
    const headgate = await startHeadgate({ customer, env, within: ["sh", "-c", 'exec "$@" 2>/dev/full', "sh"] });
    cleanups.push(() => headgate.process.kill("SIGKILL"));
    const encoder = broadcast(`${headgate.rtmp}/${await headgate.newStream()}`, { seconds: 900 });
    cleanups.push(() => encoder.kill("SIGKILL"));
    await until("the publish runs", () => customer.calls("publish").length === 1);
    encoder.kill("SIGKILL");
    await until("its end is delivered", () => customer.calls("publish_done").length === 1, WAIT_MS);
    expect(await headgate.stop()).toBe(0);
  },
  120_000,
);

inWholeRun(
  "a start without enough threads or on an unwritable folder ends with an explanation",
  async () => {
    const group = pidsGroup();
    if (group !== null) {
      for (const limit of [16, 18]) {
        group.limit(limit);
        await expect(startHeadgate({ within: group.within })).rejects.toThrow(
          /headgate: .*(Resource temporarily unavailable|cannot start its thread)/,
        );
      }
    }
    const folder = mkdtempSync(join(tmpdir(), "headgate-readonly-"));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, "file"), "");
    await expect(startHeadgate({ env: { HEADGATE_DATA_DIR: join(folder, "file", "data") } })).rejects.toThrow(
      /headgate: cannot create the data directory .*/,
    );
  },
  240_000,
);

/** If no group can be created, the operator sets how much memory there is. */
async function isFullFromTheStart(): Promise<void> {
  const headgate = await startHeadgate({ env: { HEADGATE_LIMITS_MEMORY_MB: "1" } });
  cleanups.push(() => headgate.process.kill("SIGKILL"));
  const said = async () => await (await fetch(`${headgate.metrics}/readyz`)).text();
  await until("full", async () => /^not ready: full: \d+ of 1 MB of memory /.test(await said()), WAIT_MS);
}

/** A control group of version 1 or 2 for one service; null where none can be created. */
function memoryGroup() {
  const made =
    makeGroup("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes") ??
    makeGroup("/sys/fs/cgroup", "memory.max", "memory.current");
  if (made === null) return null;
  const { within, limit, folder, used } = made;
  return { within, limit, used: () => Number(readFileSync(join(folder, used), "utf8")) };
}

const pidsGroup = () =>
  makeGroup("/sys/fs/cgroup/pids", "pids.max", "pids.current") ??
  makeGroup("/sys/fs/cgroup", "pids.max", "pids.current");

function makeGroup(parent: string, limit: string, used: string) {
  const folder = join(parent, `headgate-test-${process.pid}`);
  const remove = () => {
    try {
      rmdirSync(folder);
    } catch {}
  };
  try {
    mkdirSync(folder);
    readFileSync(join(folder, limit));
    readFileSync(join(folder, used));
  } catch {
    remove();
    return null;
  }
  cleanups.push(remove);
  cleanups.push(() => until("the group is empty", () => readFileSync(join(folder, "cgroup.procs"), "utf8") === ""));
  return {
    folder,
    used,
    within: ["sh", "-c", `echo $$ > ${folder}/cgroup.procs && exec "$@"`, "sh"],
    limit: (value: number) => writeFileSync(join(folder, limit), String(value)),
  };
}
