// The ports of a new process beside former ones: they grow with need, and where none are left, the person who upgrades
// learns that before anything changes, with the name of the setting.
import { createSocket } from "node:dgram";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { arePortsFree, lastPort } from "../../ts/listen/free-ports.ts";
import { start, until } from "../support/child.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { casesOfRun, inWholeRun } from "../support/whole-run.ts";

const LONG_MS = 180_000;
/** More than a process tried before that counted up to eight. */
const TAKEN = 20;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

let folder: string;
let headgate: Headgate | null = null;
let successor = 0;
const held: (() => Promise<void>)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-upgrade-ports-"));
});
afterEach(async () => {
  if (headgate !== null) headgate.process.kill("SIGKILL");
  if (successor > 0) process.kill(successor, "SIGKILL");
  await headgate?.process.exit;
  [headgate, successor] = [null, 0];
  for (const close of held.splice(0)) await close();
  rmSync(folder, { recursive: true, force: true });
});

/** An address of this test alone, so that its ports are. */
const ownAddress = () => `127.${[0, 0, 0].map(() => 1 + Math.floor(Math.random() * 250)).join(".")}`;

/** Ports of another program. */
async function hold(host: string, ports: readonly number[], kind: "tcp" | "udp"): Promise<void> {
  for (const port of ports) {
    if (kind === "tcp") {
      const other = createServer();
      await new Promise<void>((resolve) => other.listen(port, host, resolve));
      held.push(() => new Promise((resolve) => other.close(() => resolve())));
    } else {
      const other = createSocket("udp4");
      await new Promise<void>((resolve) => other.bind(port, host, resolve));
      held.push(() => new Promise((resolve) => other.close(() => resolve())));
    }
  }
}

const row = (from: number, count: number) => Array.from({ length: count }, (_, at) => from + at);

/** A service of one worker, on a file or on PostgreSQL, with these ports at an address of its own. */
async function serving(store: "file" | "PostgreSQL", ports: { readonly media: number; readonly node: number }) {
  const host = ownAddress();
  const env = { PATH: process.env.PATH, HEADGATE_DATA_DIR: join(folder, "data") };
  headgate = await startHeadgate({
    env: {
      HEADGATE_DATA_DIR: env.HEADGATE_DATA_DIR,
      ...{ HEADGATE_DRAIN_S: "600", HEADGATE_MEDIA_WORKERS: "1", HEADGATE_NODE_NAME: "studio" },
      ...{ HEADGATE_MEDIA_HOST: host, HEADGATE_MEDIA_PORT: String(ports.media) },
      ...{ HEADGATE_NODE_HOST: host, HEADGATE_NODE_PORT: String(ports.node) },
      ...(store === "PostgreSQL" && { HEADGATE_DATABASE_URL: await server.newDatabase() }),
    },
  });
  const service = headgate;
  return {
    host,
    service,
    /** The output for people, of success or failure. */
    async upgrade(): Promise<string> {
      const asking = start(process.execPath, ["scripts/headgate.mjs", "upgrade"], { env });
      await asking.exit;
      const said = asking.stdout() + asking.stderr();
      successor = Number(/Process (\d+) now accepts/.exec(said)?.[1] ?? 0);
      return said;
    },
  };
}

test.each(casesOfRun(["PostgreSQL", "file"] as const, 2))(
  "with the store %s a new process takes ports beyond those of others, and says which",
  async (store) => {
    const { host, upgrade } = await serving(store, { media: 20_000, node: 30_000 });
    await hold(host, row(20_001, TAKEN / 2), "tcp");
    await hold(host, row(20_001 + TAKEN / 2, TAKEN / 2), "udp");
    if (store === "PostgreSQL") await hold(host, row(30_001, TAKEN), "tcp");
    const said = await upgrade();
    expect(said).toContain("now accepts all new connections");
    expect(said).toContain(`Its media ports, UDP and TCP, are ${20_001 + TAKEN} (media.port)`);
    expect(said).toContain("up to 20999.");
    // One more is for the plays at the former process.
    if (store === "PostgreSQL") expect(said).toContain(`http://${host}:${30_002 + TAKEN} (node.port)`);
    else expect(said).not.toContain("node.port");
  },
  LONG_MS,
);

const MISSING = [
  ["PostgreSQL", "node.port", { media: 20_000, node: 65_534 }],
  ["file", "media.port", { media: 65_534, node: 30_000 }],
  ["PostgreSQL", "media.port", { media: 65_534, node: 30_000 }],
] as const;

// The short form is the test of former processes, which have the last port.
inWholeRun.each(MISSING)(
  "with the store %s and no port left, %s is named before anything changes",
  async (store, setting, ports) => {
    const { host, service, upgrade } = await serving(store, ports);
    await hold(host, [65_535], setting === "node.port" ? "tcp" : "udp");
    const said = await upgrade();
    expect(said).toContain(`${setting}: the new process needs `);
    expect(said).toContain("from 65534 to 65535, and these are in use by other programs");
    expect(said).not.toContain("The new process is");
    expect(service.process.stderr()).not.toContain('"the new process starts"');
    expect(await (await fetch(`${service.metrics}/readyz`)).text()).toBe("ready\n");
    expect(JSON.parse(await service.command(["nodes"]))).toMatchObject([{ name: "studio" }]);
  },
  LONG_MS,
);

test(
  "former processes are counted where they hold the ports",
  async () => {
    const { service, upgrade } = await serving("file", { media: 65_534, node: 30_000 });
    const name = await service.newStream();
    const sender = broadcast(`${service.rtmp}/${name}`, { seconds: 600, size: "160x90" });
    try {
      const live = async () => (await service.call("GET", "/session")) as unknown as readonly unknown[];
      await until("it is live", async () => (await live()).length > 0);
      expect(await upgrade()).toContain("are 65535 (media.port)");
      const first = successor;
      const said = await upgrade();
      successor = first;
      expect(said).toContain("some of them by a former process of this service, until the publishes there end");
    } finally {
      sender.kill("SIGKILL");
      await sender.exit;
    }
  },
  LONG_MS,
);

inWholeRun(
  "on PostgreSQL, five upgrades fit while every former process stays",
  async () => {
    const { service, upgrade } = await serving("PostgreSQL", { media: 20_000, node: 30_000 });
    const senders: Broadcast[] = [];
    const live = async () => (await service.call("GET", "/session")) as unknown as readonly unknown[];
    const pids: number[] = [];
    try {
      for (let turn = 1; turn <= 5; turn += 1) {
        senders.push(broadcast(`${service.rtmp}/${await service.newStream()}`, { seconds: 600, size: "160x90" }));
        await until("all are live", async () => (await live()).length === turn);
        expect(await upgrade()).toContain("1 publish stays");
        pids.push(successor);
      }
      expect(JSON.parse(await service.command(["nodes"]))).toHaveLength(6);
    } finally {
      // The oldest first: none of them is to replace another.
      service.process.kill("SIGKILL");
      for (const pid of pids.slice(0, -1)) process.kill(pid, "SIGKILL");
      for (const sender of senders) sender.kill("SIGKILL");
    }
  },
  LONG_MS,
);

test("ports in a row are looked for, up to the last one", async () => {
  const host = ownAddress();
  await hold(host, [65_531, 65_533], "tcp");
  const free = (from: number, count: number) => arePortsFree({ host, from, count, hasUdp: true });
  expect(await free(65_530, 2)).toBe(true);
  expect(await free(65_530, 3)).toBe(false);
  expect(await free(0, 9)).toBe(true);
  expect([lastPort(0), lastPort(8_091), lastPort(65_000)]).toEqual([0, 9_090, 65_535]);
});
