// A running service is replaced by a new process: running publishes stay, new requests go to the new process,
// and no client notices.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { start, until } from "../../support/child.ts";
import { type Customer, startCustomer } from "../../support/customer.ts";
import { type Broadcast, broadcast, type Packet, packetsOf } from "../../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../../support/headgate.ts";
import { isAlive } from "../../support/is-alive.ts";
import { databaseUrlOf } from "../../support/stores.ts";
import { publishByWerift } from "../../support/werift.ts";
import { inWholeRun } from "../../support/whole-run.ts";

interface Upgraded {
  readonly pid: number;
  readonly former_pid: number;
  readonly publishes: number;
  readonly drain_s: number;
}

let customer: Customer;
let headgate: Headgate | null = null;
const broadcasts: Broadcast[] = [];
const successors: number[] = [];

beforeEach(async () => {
  customer = await startCustomer();
});
afterEach(async () => {
  for (const each of broadcasts.splice(0)) each.kill("SIGKILL");
  for (const pid of successors.splice(0)) killed(pid);
  headgate?.process.kill("SIGKILL");
  await headgate?.process.exit;
  headgate = null;
  await customer.close();
});

function killed(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already exited.
  }
}

async function serving(env: Readonly<Record<string, string>> = {}): Promise<Headgate> {
  headgate = await startHeadgate({ customer, env: { HEADGATE_DRAIN_S: "600", ...env } });
  return headgate;
}

async function upgraded(service: Headgate): Promise<Upgraded> {
  const done = JSON.parse(await service.command(["upgrade"])) as Upgraded;
  successors.push(done.pid);
  return done;
}

function publish(service: Headgate, name: string): Broadcast {
  const each = broadcast(`${service.rtmp}/${name}`, { seconds: 600, size: "160x90", keepsCopy: true });
  broadcasts.push(each);
  return each;
}

const live = async (service: Headgate) =>
  (await service.call("GET", "/session")) as unknown as readonly {
    readonly client_id: number;
    readonly streamname: string;
  }[];
const isLive = (service: Headgate, name: string) =>
  until(`${name} is live`, async () => (await live(service)).find(({ streamname }) => streamname === name));
const videoOf = (packets: readonly Packet[]) => packets.filter(({ track }) => track === "video");
const readiness = async ({ metrics }: Headgate) => await (await fetch(`${metrics}/readyz`)).text();
const hasLeft = (pid: number) => until(`process ${pid} leaves`, () => !isAlive(pid), 60_000);

test("a running publish continues, its players lose no frame, and new publishes go to the new process", async () => {
  const service = await serving();
  const [first, second] = [await service.newStream(), await service.newStream()];
  const before = publish(service, first);
  await isLive(service, first);
  const early = packetsOf(`${service.rtmp}/${first}`);

  const { pid, former_pid, publishes } = await upgraded(service);
  expect(former_pid).toBe(service.process.pid);
  expect(pid).not.toBe(former_pid);
  expect(publishes).toBe(1);
  expect(await readiness(service)).toBe("ready\n");

  // Streams of the former process are listed and played by the new one.
  const late = packetsOf(`${service.rtmp}/${first}`);
  publish(service, second);
  await isLive(service, second);
  expect((await live(service)).map(({ streamname }) => streamname).sort()).toEqual([first, second].sort());
  const rival = broadcast(`${service.rtmp}/${first}`, { seconds: 5, size: "160x90" });
  expect(await rival.exit).not.toBe(0);

  await until("the new process plays the former one's stream", async () =>
    /^headgate_pulls 1$/m.test(await (await fetch(`${service.metrics}/metrics`)).text()),
  );
  before.kill("SIGINT");
  await before.exit;
  const sent = videoOf(await before.sent()).map(({ hash }) => hash);
  const watched = videoOf(await early).map(({ hash }) => hash);
  expect(watched).toEqual(sent.slice(-watched.length));
  const joined = videoOf(await late).map(({ hash }) => hash);
  expect(joined.length).toBeGreaterThan(0);
  expect(joined).toEqual(sent.slice(-joined.length));
  await customer.received("publish_done");
  await hasLeft(former_pid);
  expect(customer.calls("publish")).toHaveLength(2);
  expect(customer.calls("publish_done")).toHaveLength(1);
  await isLive(service, second);
}, 120_000);

inWholeRun(
  "a WHIP session of the former process is ended by a request to the new one",
  async () => {
    const service = await serving();
    const name = await service.newStream();
    const published = publishByWerift(service.whip(name), 12, "160x90");
    await isLive(service, name);
    const { former_pid } = await upgraded(service);
    await published; // its DELETE was answered 200
    await customer.received("publish_done");
    await hasLeft(former_pid);
    expect(customer.calls("publish")).toHaveLength(1);
    expect(customer.calls("publish_done")).toHaveLength(1);
  },
  120_000,
);

inWholeRun(
  "a command about a publish of the former process reaches it, and its metrics are available through the new one",
  async () => {
    const service = await serving({ HEADGATE_NODE_NAME: "studio" });
    const name = await service.newStream();
    publish(service, name);
    const { client_id } = await isLive(service, name);
    await upgraded(service);
    const nodes = JSON.parse(await service.command(["nodes"])) as {
      readonly name: string;
      readonly publishes: number;
    }[];
    const former = nodes.find((node) => node.name !== "studio");
    expect(former?.name).toMatch(/^studio@\d+$/);
    const metricsOf = async (node: string) =>
      await (await fetch(`${service.metrics}/metrics?node=${encodeURIComponent(node)}`)).text();
    expect(await metricsOf(former?.name ?? "")).toMatch(/headgate_state_info\{state="leaving"\} 1/);
    expect(await metricsOf("studio")).toMatch(/headgate_state_info\{state="ready"\} 1/);
    await service.call("POST", `/session/${client_id}/kick`);
    await customer.received("publish_done");
  },
  120_000,
);

/** Loaded by every process of the service: its new process says neither that it listens nor anything after that. */
const MUTE = `
  import { writeFileSync } from "node:fs";
  const send = process.send?.bind(process);
  if (send !== undefined && process.env.LISTEN_PARENT_PID === String(process.ppid)) {
    process.send = (message, ...more) => {
      if (message.word !== "listening") return send(message, ...more);
      writeFileSync(new URL("listens", import.meta.url), [process.pid, process.ppid].join(" "));
    };
  }`;

test("publishes that a new process accepted before it failed end, and their names are free", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-handover-"));
  try {
    writeFileSync(join(folder, "mute.mjs"), MUTE);
    const service = await serving({ NODE_OPTIONS: `--import=${join(folder, "mute.mjs")}` });
    const name = await service.newStream();
    const failing = service.command(["upgrade"]).catch((error: Error) => error);
    const listens = join(folder, "listens");
    await until("it listens", () => existsSync(listens) && readFileSync(listens, "utf8").includes(" "), 60_000);
    const [pid, former] = readFileSync(listens, "utf8").split(" ").map(Number);
    if (pid === undefined || former === undefined) throw new Error("both have an id");
    process.kill(former, "SIGSTOP"); // so that all connections are the new one's
    publish(service, name);
    await isLive(service, name);
    process.kill(pid, "SIGKILL");
    process.kill(former, "SIGCONT");
    expect(await failing).toBeInstanceOf(Error);
    await until("its end is delivered", () => customer.calls("publish_done").length > 0);
    publish(service, name);
    await isLive(service, name);
    expect(customer.calls("publish_done")).toHaveLength(1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);

inWholeRun(
  "a new process that cannot start changes nothing, and the command says why",
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "headgate-handover-"));
    try {
      const service = await serving({ HEADGATE_DATA_DIR: dataDir });
      const [first, second] = [await service.newStream(), await service.newStream()];
      publish(service, first);
      await isLive(service, first);
      writeFileSync(join(dataDir, "headgate.toml"), "drain = 5\n");
      await expect(service.command(["upgrade"])).rejects.toThrow(/unknown key drain/);
      rmSync(join(dataDir, "headgate.toml"));
      writeFileSync(join(dataDir, "headgate.toml"), "[http]\ntls_cert = 'none.pem'\ntls_key = 'none.pem'\n");
      // The command reads no certificates: the new process has to report them.
      await expect(service.command(["upgrade"])).rejects.toThrow(/none\.pem/);
      rmSync(join(dataDir, "headgate.toml"));
      expect(await readiness(service)).toBe("ready\n");
      publish(service, second);
      await isLive(service, second);
      expect(customer.calls("publish_done")).toHaveLength(0);
      const { publishes } = await upgraded(service);
      expect(publishes).toBe(2);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
  120_000,
);

inWholeRun(
  "no other service starts beside a service and its successor",
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "headgate-handover-"));
    try {
      const databaseUrl = await databaseUrlOf(dataDir);
      const store = { HEADGATE_DATA_DIR: dataDir, ...(databaseUrl !== null && { HEADGATE_DATABASE_URL: databaseUrl }) };
      const service = await serving(store);
      publish(service, await service.newStream());
      await customer.received("publish");
      const { pid, former_pid } = await upgraded(service);
      const refused = async () => {
        const env = {
          PATH: process.env.PATH,
          ...store,
          HEADGATE_HTTP_PORT: "0",
          HEADGATE_RTMP_PORT: "0",
        };
        const other = start(process.execPath, ["scripts/headgate.mjs", "serve"], { env });
        expect(await other.exit).toBe(4);
        expect(other.stderr()).toContain("in use by another headgate process");
      };
      await refused();
      killed(former_pid);
      await refused();
      expect(isAlive(pid)).toBe(true);
      // What the former process left is ended by its successor, once.
      await until("its end is delivered", () => customer.calls("publish_done").length > 0, 90_000);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
  180_000,
);

inWholeRun(
  "a former process whose successor has died ends at the first signal, and delivers the ends of its publishes",
  async () => {
    const service = await serving();
    publish(service, await service.newStream());
    await customer.received("publish");
    const { pid } = await upgraded(service);
    killed(pid);
    await until("the new process is gone", () => !isAlive(pid));
    service.process.kill("SIGTERM");
    expect(await service.process.exit).toBe(0);
    expect(customer.calls("publish_done")).toHaveLength(1);
  },
  120_000,
);
