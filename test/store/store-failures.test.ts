// A store that cannot be written stops new work, keeps what is live, says why, and is used again when it can
// be: the running service with a full disk and with an unreachable PostgreSQL. And a service that is killed
// loses nothing.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import { expect, type TestContext, test } from "vitest";
import { openStore } from "../../ts/store/open.ts";
import { until } from "../support/child.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { startPostgres } from "../support/postgres.ts";
import { inWholeRun, storesOfRun } from "../support/whole-run.ts";

/** Size of the small disk, bytes. */
const DISK_BYTES = 16 * 1024 * 1024;
const WAIT_MS = 60_000;
/** Writes that are acknowledged before the service is killed. */
const WRITES = 1_000;

/** Called at the end of the test, last one first. */
type AtEnd = (cleanup: () => unknown) => void;
const atEndOf = ({ onTestFinished }: TestContext): AtEnd => {
  const cleanups: (() => unknown)[] = [];
  onTestFinished(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  }, WAIT_MS);
  return (cleanup) => void cleanups.push(cleanup);
};

interface Trouble {
  readonly begin: () => unknown;
  readonly end: () => unknown;
  /** The answer of /readyz meanwhile. */
  readonly says: RegExp;
}

async function survives(headgate: Headgate, customer: Customer, trouble: Trouble): Promise<void> {
  const readyz = async () => await (await fetch(`${metricsOf(headgate)}/readyz`)).text();
  const newStream = () =>
    headgate.call("POST", "/stream").then(
      () => "made",
      (error: Error) => error.message,
    );
  const name = await headgate.newStream();
  const spare = await headgate.newStream();
  const encoder = broadcast(`${headgate.rtmp}/${name}`, { seconds: 240 });
  await until("the publish runs", () => headgate.process.stderr().includes("publish started"));
  expect(await readyz()).toBe("ready\n");

  await trouble.begin();
  await until("not ready", async () => trouble.says.test(await readyz()), WAIT_MS);
  await until("new work is refused", async () => / 503 .*Temporarily unavailable/.test(await newStream()), WAIT_MS);
  const refused = broadcast(`${headgate.rtmp}/${spare}`, { seconds: 20 });
  expect(await refused.exit).not.toBe(0);
  expect(headgate.process.stderr()).toContain("store_unavailable");
  // No end may depend on an event that could not be stored.
  expect(customer.calls("publish")).toHaveLength(1);

  await trouble.end();
  await until("ready", async () => (await readyz()) === "ready\n", WAIT_MS);
  await until("new work is done", async () => (await newStream()) === "made", WAIT_MS);
  expect(headgate.process.stderr()).not.toContain("publish ended");
  encoder.kill("SIGKILL");
  await until("its end is recorded", () => headgate.process.stderr().includes("publish ended"), WAIT_MS);
  expect(await headgate.stop()).toBe(0);
}

function metricsOf(headgate: Headgate): string {
  const line =
    headgate.process
      .stdout()
      .split("\n")
      .find((text) => text.startsWith("{")) ?? "";
  return (JSON.parse(line) as { metrics: string }).metrics;
}

/** A small disk that is filled if we may mount one; otherwise another program that locks the file. */
function fullDisk(folder: string, atEnd: AtEnd): Trouble {
  const filler = join(folder, "filler");
  if (process.getuid?.() === 0) {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", folder]);
    atEnd(() => execFileSync("umount", ["--lazy", folder]));
    return {
      begin: () => {
        for (let size = DISK_BYTES; size >= 1; size = Math.floor(size / 2)) {
          try {
            writeFileSync(filler, Buffer.alloc(size), { flag: "a" });
          } catch {}
        }
      },
      end: () => rmSync(filler),
      says: /^not ready: the disk of .* is full: \d+ KiB are left\n$/,
    };
  }
  let holder: InstanceType<typeof Database> | null = null;
  return {
    begin: () => {
      holder = new Database(join(folder, "data", "headgate.db"));
      holder.exec("BEGIN IMMEDIATE");
    },
    end: () => holder?.close(),
    says: /^not ready: .*(locked|no answer)/,
  };
}

// They wait most of their time: running them concurrently costs no more.
test.concurrent("a full disk stops new work and no live stream, and the service recovers when there is space", async (context) => {
  const atEnd = atEndOf(context);
  const folder = mkdtempSync(join(tmpdir(), "headgate-disk-"));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  const trouble = fullDisk(folder, atEnd);
  const customer = await startCustomer();
  atEnd(() => customer.close());
  const headgate = await startHeadgate({ customer, env: { HEADGATE_DATA_DIR: join(folder, "data") } });
  await survives(headgate, customer, trouble);
}, 180_000);

test.concurrent("an unreachable PostgreSQL stops new work and no live stream, and is used when it is back", async (context) => {
  const atEnd = atEndOf(context);
  const server = await startPostgres();
  atEnd(() => server.close());
  const customer = await startCustomer();
  atEnd(() => customer.close());
  const headgate = await startHeadgate({ customer, env: { HEADGATE_DATABASE_URL: await server.newDatabase() } });
  await survives(headgate, customer, { begin: server.stop, end: server.start, says: /^not ready: / });
}, 180_000);

// Short forms: the same of a store alone (store.test.ts), and of a service (webhook-endurance.test.ts).
inWholeRun.concurrent.for(storesOfRun)(
  "kill -9 during many acknowledged writes loses none of them: %s",
  { timeout: 120_000 },
  async (store, context) => {
    const atEnd = atEndOf(context);
    const folder = mkdtempSync(join(tmpdir(), "headgate-killed-"));
    atEnd(() => rmSync(folder, { recursive: true, force: true }));
    const dataDir = join(folder, "data");
    mkdirSync(dataDir);
    let databaseUrl: string | null = null;
    if (store === "PostgreSQL") {
      const server = await startPostgres({ fsync: "on" });
      atEnd(() => server.close());
      databaseUrl = await server.newDatabase();
    }
    const url: Record<string, string> = databaseUrl === null ? {} : { HEADGATE_DATABASE_URL: databaseUrl };
    const headgate = await startHeadgate({
      env: { HEADGATE_DATA_DIR: dataDir, HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0", ...url },
    });
    const acknowledged: string[] = [];
    let killed = false;
    const writer = async () => {
      while (!killed) {
        const name = await headgate.newStream().catch(() => null);
        if (name !== null) acknowledged.push(name);
        if (acknowledged.length >= WRITES && !killed) {
          killed = true;
          headgate.process.kill("SIGKILL");
        }
      }
    };
    await Promise.all(Array.from({ length: 16 }, writer));
    await headgate.process.exit;
    const { db, close } = await openStore({ dataDir, databaseUrl });
    const rows = await db.selectFrom("stream").select("name").execute();
    await close();
    const kept = new Set(rows.map(({ name }) => name));
    expect(acknowledged.length).toBeGreaterThanOrEqual(WRITES);
    expect(acknowledged.filter((name) => !kept.has(name))).toEqual([]);
  },
);
