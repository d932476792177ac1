// The service under a service manager: sockets passed at its start, and notifications to the manager, also
// when a new process takes over.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { providePython } from "../../scripts/python.mjs";
import { readInherited } from "../../ts/handover/inherited.ts";
import { type Child, run, start, until } from "../support/child.ts";

const NAMES = ["http", "rtmp", "metrics"] as const;

let service: Child | null = null;
let successor: number | null = null;
let dataDir: string | null = null;
afterEach(async () => {
  if (successor !== null) process.kill(successor, "SIGKILL");
  if (service !== null) process.kill(-service.pid, "SIGKILL");
  await service?.exit;
  if (dataDir !== null) rmSync(dataDir, { recursive: true, force: true });
  [service, successor, dataDir] = [null, null, null];
});

test("the manager's sockets are served, and it is notified of readiness and of the main process", async () => {
  dataDir = mkdtempSync(join(tmpdir(), "headgate-manager-"));
  const env = {
    PATH: process.env.PATH,
    HEADGATE_DATA_DIR: dataDir,
    HEADGATE_MEDIA_HOST: "127.0.0.1",
    HEADGATE_MEDIA_PORT: "0",
    HEADGATE_MEDIA_WORKERS: "1",
    HEADGATE_DRAIN_S: "0",
  };
  const command = [process.execPath, "scripts/headgate.mjs", "serve"];
  const notify = join(dataDir, "notify.sock");
  const words = ["test/fixtures/socket-activation.py", notify, NAMES.join(","), ...command];
  service = start(providePython(), words, { env, detached: true });
  const said = service.stdout;
  const told = (line: string) => until(line, () => said().split("\n").includes(`told ${line}`), 60_000);
  await told("READY=1");
  const ports = JSON.parse(said().split("\n")[0] ?? "") as Record<(typeof NAMES)[number], number>;
  const ready = async () => await (await fetch(`http://127.0.0.1:${ports.metrics}/readyz`)).text();
  expect(await ready()).toBe("ready\n");
  expect((await fetch(`http://127.0.0.1:${ports.http}/.well-known/jwks.json`)).status).toBe(200);
  expect(said()).toContain(`"rtmp":"rtmp://127.0.0.1:${ports.rtmp}/live"`);

  const upgraded = await run(process.execPath, ["scripts/headgate.mjs", "upgrade", "--json"], { env });
  ({ pid: successor } = JSON.parse(upgraded.stdout()) as { readonly pid: number });
  await told(`MAINPID=${successor}`);
  expect(said()).not.toContain("told STOPPING=1");
  expect(await ready()).toBe("ready\n");
  process.kill(successor ?? 0, "SIGTERM");
  successor = null;
  await told("STOPPING=1");
}, 120_000);

test("without a manager, or with sockets meant for another process, there are none", () => {
  const sockets = { LISTEN_PID: "7", LISTEN_FDS: "1", LISTEN_FDNAMES: "http" };
  expect(readInherited({ pid: 8, ppid: 1 }, {})).toEqual({
    ...{ sockets: new Map(), lifelines: [], isSuccessor: false, manager: null },
  });
  expect(readInherited({ pid: 8, ppid: 1 }, sockets).sockets.size).toBe(0);
  expect(readInherited({ pid: 7, ppid: 1 }, sockets).sockets).toEqual(new Map([["http", 3]]));
  expect(readInherited({ pid: 9, ppid: 7 }, { ...sockets, LISTEN_PARENT_PID: "7" }).isSuccessor).toBe(true);
});

test("a socket with an unknown name is refused", () => {
  const sockets = { LISTEN_PID: "7", LISTEN_FDS: "2", LISTEN_FDNAMES: "http:headgate.socket" };
  expect(() => readInherited({ pid: 7, ppid: 1 }, sockets)).toThrow(/headgate\.socket.*http, rtmp, rtmps, metrics/);
});
