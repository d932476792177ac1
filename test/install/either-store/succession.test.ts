// A new process that dies after an upgrade: the former process, while it is there, starts another in its place. No
// port closes, and no running publish is touched. The service manager's part: test/install/service-unit.test.ts.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { connect } from "node:tls";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/child.ts";
import { testCertificates } from "../../support/customer.ts";
import { type Broadcast, broadcast, type Packet, packetsOf } from "../../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { isAlive } from "../../support/is-alive.ts";
import { casesOfRun, inWholeRun } from "../../support/whole-run.ts";

const LONG_MS = 180_000;
/** How long a process may take to start on a busy machine, ms. */
const START_MS = 90_000;

interface Upgraded {
  readonly pid: number;
  readonly former_pid: number;
}

let folder: string;
let headgate: Headgate | null = null;
const broadcasts: Broadcast[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-succession-"));
});
afterEach(async () => {
  for (const each of broadcasts.splice(0)) each.kill("SIGKILL");
  const all = headgate === null ? [] : pidsOf(headgate);
  // The oldest first: none of them is to replace another.
  for (const pid of all) killed(pid);
  await headgate?.process.exit;
  headgate = null;
  rmSync(folder, { recursive: true, force: true });
});

function killed(pid: number, signal: NodeJS.Signals = "SIGKILL"): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has already exited.
  }
}

async function serving(env: Readonly<Record<string, string>> = {}): Promise<Headgate> {
  const dying = pathToFileURL(resolve("test/fixtures/dying.mjs")).href;
  headgate = await startHeadgate({
    env: {
      HEADGATE_DRAIN_S: "600",
      NODE_OPTIONS: `--import=${dying}`,
      DYING_FOLDER: pathToFileURL(`${folder}/`).href,
      ...env,
    },
  });
  return headgate;
}

const lines = (service: Headgate) => service.process.stderr().split("\n");
/** Every process of the service so far, in the order of their start. */
const pidsOf = (service: Headgate): readonly number[] => [
  service.process.pid,
  ...lines(service).flatMap((line) =>
    line.includes('"msg":"the new process starts"') ? [JSON.parse(line).successor] : [],
  ),
];
const logged = (service: Headgate, text: string, count = 1) =>
  until(`${count} × ${text}`, () => lines(service).filter((line) => line.includes(text)).length >= count, START_MS);
const upgraded = async (service: Headgate) => JSON.parse(await service.command(["upgrade"])) as Upgraded;

function publish(service: Headgate, name: string): Broadcast {
  const each = broadcast(`${service.rtmp}/${name}`, { seconds: 600, size: "160x90", keepsCopy: true });
  broadcasts.push(each);
  return each;
}

const live = async (service: Headgate) =>
  ((await service.call("GET", "/session")) as unknown as readonly { readonly streamname: string }[]).map(
    ({ streamname }) => streamname,
  );
const isLive = (service: Headgate, name: string) =>
  until(`${name} is live`, async () => (await live(service)).includes(name), START_MS);

/** The process that took the place of `died`: it is ready, accepts publishes on every port, and commands reach it. */
async function serves(service: Headgate, died: number): Promise<number> {
  await until(`process ${died} has died`, () => !isAlive(died));
  await logged(service, "took the place of the one that died");
  expect(await (await fetch(`${service.metrics}/readyz`)).text()).toBe("ready\n");
  const name = await service.newStream();
  publish(service, name);
  await isLive(service, name);
  const serving = pidsOf(service).at(-1) ?? 0;
  expect(serving).not.toBe(died);
  expect(isAlive(serving)).toBe(true);
  return serving;
}

function speaksTls(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      socket.destroy();
      resolve();
    }).once("error", reject);
  });
}

const videoOf = (packets: readonly Packet[]) => packets.filter(({ track }) => track === "video");

const KILLS = ["SIGKILL", "exit code 7", "SIGABRT", "SIGSEGV"] as const;

test.each(casesOfRun(KILLS, 4))(
  "a new process that ends by %s is replaced, and the running publish loses no frame",
  async (how) => {
    const service = await serving();
    const name = await service.newStream();
    const running = publish(service, name);
    await isLive(service, name);
    const played = packetsOf(`${service.rtmp}/${name}`);
    const { pid, former_pid } = await upgraded(service);
    if (how === "exit code 7") writeFileSync(join(folder, `exit-${pid}`), "");
    else killed(pid, how);
    const next = await serves(service, pid);
    await isLive(service, name);
    expect(pidsOf(service)).toEqual([former_pid, pid, next]);
    // And the service can be upgraded as before.
    const again = await upgraded(service);
    expect(again.former_pid).toBe(next);
    running.kill("SIGINT");
    await running.exit;
    const sent = videoOf(await running.sent()).map(({ hash }) => hash);
    const seen = videoOf(await played).map(({ hash }) => hash);
    expect(seen.length).toBeGreaterThan(0);
    expect(seen).toEqual(sent.slice(-seen.length));
    await until("the first process leaves", () => !isAlive(former_pid), START_MS);
  },
  LONG_MS,
);

inWholeRun(
  "without any publish, too, and as often as it dies",
  async () => {
    const { cert, key } = testCertificates();
    writeFileSync(join(folder, "cert.pem"), cert);
    writeFileSync(join(folder, "key.pem"), key);
    const service = await serving({
      HEADGATE_RTMP_TLS_PORT: "0",
      HEADGATE_RTMP_TLS_CERT: join(folder, "cert.pem"),
      HEADGATE_RTMP_TLS_KEY: join(folder, "key.pem"),
    });
    const { pid } = await upgraded(service);
    killed(pid);
    const next = await serves(service, pid);
    await speaksTls(Number(new URL(service.rtmps ?? "").port));
    const again = await upgraded(service);
    expect(again.former_pid).toBe(next);
    killed(again.pid);
    await logged(service, "took the place of the one that died", 2);
    expect(await (await fetch(`${service.metrics}/readyz`)).text()).toBe("ready\n");
  },
  LONG_MS,
);

/** Whether the command succeeds, for each moment of the death. */
const MOMENTS = [
  ["prepared", false],
  ["listen", false],
  ["listening", null],
  ["yours", true],
] as const;

inWholeRun.each(MOMENTS)(
  "a new process that dies at the word %s leaves a service that accepts publishes",
  async (word, succeeds) => {
    const service = await serving({ DIE_AT: word });
    const name = await service.newStream();
    publish(service, name);
    await isLive(service, name);
    const outcome = await upgraded(service).then(
      () => true,
      () => false,
    );
    if (succeeds !== null) expect(outcome).toBe(succeeds);
    const died = Number(
      await until("it dies", () => existsSync(join(folder, "died")) && readFileSync(join(folder, "died"), "utf8")),
    );
    await until("it is gone", () => !isAlive(died));
    if (outcome) await logged(service, "took the place of the one that died");
    const other = await service.newStream();
    publish(service, other);
    await isLive(service, other);
    await isLive(service, name);
    expect(await (await fetch(`${service.metrics}/readyz`)).text()).toBe("ready\n");
  },
  LONG_MS,
);

inWholeRun(
  "the latest process that is still there replaces it, whichever that is",
  async () => {
    const service = await serving();
    const [first, second] = [await service.newStream(), await service.newStream()];
    publish(service, first);
    await isLive(service, first);
    const one = await upgraded(service);
    const later = publish(service, second);
    await isLive(service, second);
    const two = await upgraded(service);
    killed(two.pid);
    const three = await serves(service, two.pid);
    await isLive(service, first);
    await isLive(service, second);
    expect(lines(service).filter((line) => line.includes("took the place"))).toHaveLength(1);
    // Its own publish ends: only the first process is left beside the one that serves.
    later.kill("SIGINT");
    await until("the second process leaves", () => !isAlive(one.pid), START_MS);
    killed(three);
    await until("it is gone", () => !isAlive(three));
    await logged(service, "took the place of the one that died", 2);
    await isLive(service, first);
    expect(await (await fetch(`${service.metrics}/readyz`)).text()).toBe("ready\n");
  },
  LONG_MS,
);

test(
  "a service that is told to stop is not replaced: it waits for the publishes of the former process, too",
  async () => {
    const service = await serving();
    const name = await service.newStream();
    const running = publish(service, name);
    await isLive(service, name);
    const { pid } = await upgraded(service);
    killed(pid, "SIGTERM");
    await logged(service, "the service was told to stop");
    await expect(fetch(`${service.metrics}/readyz`).then((answer) => answer.status)).resolves.toBe(503);
    expect(isAlive(pid)).toBe(true);
    running.kill("SIGINT");
    await running.exit;
    expect(await service.process.exit).toBe(0);
    await until("the service ends", () => !isAlive(pid), START_MS);
    expect(pidsOf(service)).toHaveLength(2);
    await expect(fetch(`${service.metrics}/readyz`)).rejects.toThrow();
  },
  LONG_MS,
);

test(
  "a former process that can start no other ends with 1 after its last publish, so that the service is started again",
  async () => {
    const service = await serving({ HEADGATE_DATA_DIR: join(folder, "data") });
    const name = await service.newStream();
    const running = publish(service, name);
    await isLive(service, name);
    const { pid } = await upgraded(service);
    writeFileSync(join(folder, "data", "headgate.toml"), "no sense\n");
    killed(pid);
    await logged(service, "no process could be started in place of the one that died", 2);
    expect(lines(service).some((line) => line.includes("headgate.toml: line 1"))).toBe(true);
    expect(isAlive(service.process.pid)).toBe(true);
    running.kill("SIGINT");
    await running.exit;
    expect(await service.process.exit).toBe(1);
  },
  LONG_MS,
);

inWholeRun(
  "a signal ends a former process that is starting another one",
  async () => {
    const service = await serving({ HEADGATE_DATA_DIR: join(folder, "data") });
    publish(service, await service.newStream());
    await until("it runs", async () => (await live(service)).length === 1);
    const { pid } = await upgraded(service);
    writeFileSync(join(folder, "data", "headgate.toml"), "no sense\n");
    killed(pid);
    await logged(service, "no process could be started in place of the one that died");
    service.process.kill("SIGTERM");
    expect(await service.process.exit).toBe(0);
    expect(lines(service).some((line) => line.includes("publish ended"))).toBe(true);
  },
  LONG_MS,
);
