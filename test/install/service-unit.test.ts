// The systemd unit's own rules, under a systemd that is booted for the test: whichever process of the service dies, and
// whenever, ports are open again soon, and publishes of processes that live go on. Needs root, namespaces and systemd.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BootedSystemd, bootSystemd, INSIDE } from "../support/booted-systemd.ts";
import { run, until } from "../support/child.ts";
import { type Broadcast, broadcast } from "../support/ffmpeg.ts";
import { pause } from "../support/pause.ts";
import { inWholeRun } from "../support/whole-run.ts";

const UNIT = "deploy/systemd/headgate.service";
const KEY = "unit-key-unit-key-unit-key";
const LIMIT_MS = 600_000;
const WAIT_MS = 90_000;
/** Keys of the unit that decide about life and death. */
const RULES = /^(Type|NotifyAccess|ExecStop|ExitType|Kill\w+|Timeout\w+|Restart\w*|StartLimit\w+)=/;

test("the unit starts the service again in every case but an unusable configuration", () => {
  const lines = readFileSync(UNIT, "utf8").split("\n");
  const rules = lines.filter((line) => RULES.test(line));
  const wanted = ["StartLimitIntervalSec=0", "NotifyAccess=all", "ExitType=cgroup", "Restart=always"];
  expect(rules).toEqual(expect.arrayContaining([...wanted, "RestartPreventExitStatus=2"]));
});

let folder: string;
let system: BootedSystemd | null = null;
const broadcasts: Broadcast[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-unit-"));
});
afterEach(async () => {
  for (const each of broadcasts.splice(0)) each.kill("SIGKILL");
  await system?.close();
  system = null;
  rmSync(folder, { recursive: true, force: true });
});

/** The unit with its rules, for this checkout, whose files every user may read. */
function writeUnit(): void {
  const rules = readFileSync(UNIT, "utf8")
    .split("\n")
    .filter((line) => RULES.test(line));
  const command = `${process.execPath} ${resolve("scripts/headgate.mjs")}`;
  const settings = {
    ...{ PATH: process.env.PATH, HEADGATE_DATA_DIR: `${INSIDE}/data`, HEADGATE_BOOTSTRAP_API_KEY: KEY },
    ...{ HEADGATE_BOOTSTRAP_SHOW: "file", HEADGATE_LIMITS_LOAD_PERCENT: "0", HEADGATE_MEDIA_WORKERS: "1" },
    ...{ HEADGATE_DEV: "1", HEADGATE_PUBLISH_HOLD_S: "0", HEADGATE_PUBLIC_ADDRESSES: "127.0.0.1" },
  };
  const unit = [
    "[Unit]",
    "DefaultDependencies=no",
    ...rules.filter((line) => line.startsWith("StartLimit")),
    "[Service]",
    ...rules.filter((line) => !line.startsWith("StartLimit")),
    `ExecStart=${command} serve`,
    `ExecReload=${command} upgrade`,
    ...Object.entries(settings).map(([name, value]) => `Environment=${name}=${value}`),
    `StandardOutput=append:${INSIDE}/log`,
    `StandardError=append:${INSIDE}/log`,
  ];
  mkdirSync(join(folder, "data"), { mode: 0o700 });
  writeFileSync(join(folder, "headgate.service"), `${unit.join("\n")}\n`);
}

inWholeRun.each(["v2", "v1"] as const)(
  "no death of a process leaves the service dead, with cgroup %s",
  async (version) => {
    writeUnit();
    system = await bootSystemd(folder, version);
    if (system === null) {
      console.warn(
        `this machine does not boot a systemd with cgroup ${version}: test/install/either-store/succession.test.ts simulates it`,
      );
      return;
    }
    const booted = system;
    const shown = (name: string) => booted.systemctl("show", "headgate", "--value", `--property=${name}`).trim();
    const main = () => Number(shown("MainPID"));
    async function kill(...pids: number[]): Promise<void> {
      if (pids.some((pid) => pid <= 1)) throw new Error(`not processes of the service: ${pids}`);
      const [program = "", ...words] = [...booted.within, "kill", "-KILL", ...pids.map(String)];
      await run(program, words);
    }
    const isThere = (pid: number) =>
      booted
        .systemctl("status", "headgate", "--no-pager")
        .split("\n")
        .some((line) => line.includes(`─${pid} `));
    async function call(method: string, path: string): Promise<unknown> {
      const asked = `fetch("http://127.0.0.1:8080${path}", { method: "${method}", headers: { "x-service-apikey": "${KEY}" } })
        .then((answer) => answer.text()).then((text) => console.log(text), () => console.log("null"))`;
      const [program = "", ...words] = [...booted.within, process.execPath, "-e", asked];
      return JSON.parse((await run(program, words)).stdout());
    }
    const live = async () =>
      ((await call("GET", "/session")) as readonly { readonly streamname: string }[] | null) ?? [];
    async function publish(): Promise<{ readonly name: string; readonly sender: Broadcast }> {
      const stream = (await call("POST", "/stream")) as { ingest: { rtmp: { streamname: string } } };
      const name = stream.ingest.rtmp.streamname;
      const within = ["nsenter", "--target", booted.within[2] ?? "", "--net"];
      const sender = broadcast(`rtmp://127.0.0.1:1935/live/${name}`, { seconds: 900, size: "160x90", within });
      broadcasts.push(sender);
      await until("it is live", async () => (await live()).some(({ streamname }) => streamname === name), WAIT_MS);
      return { name, sender };
    }
    const isLive = async (name: string) => (await live()).some(({ streamname }) => streamname === name);
    async function reload(): Promise<number> {
      const before = main();
      booted.systemctl("reload", "headgate");
      return await until("another is the main process", () => main() !== before && (main() || null), WAIT_MS);
    }
    /** Another process than these is the main one, and serves. */
    const serves = (...dead: number[]) =>
      until(
        `another process than ${dead} serves`,
        async () => {
          const pid = main();
          if (pid === 0 || dead.includes(pid) || shown("ActiveState") !== "active") return null;
          return (await call("GET", "/organisation")) === null ? null : pid;
        },
        WAIT_MS,
      );
    const restarts = () => Number(shown("NRestarts"));

    booted.systemctl("start", "headgate");
    const first = await serves(0);
    const { name, sender } = await publish();

    // The new process dies while the former one carries a publish.
    const second = await reload();
    await kill(second);
    const third = await serves(first, second);
    expect(await isLive(name)).toBe(true);
    // And so does another, when the process that started it has ended: the first one is left.
    const fourth = await reload();
    await until("the one in between ends", () => !isThere(third), WAIT_MS);
    await kill(fourth);
    await serves(first, second, third, fourth);
    expect(await isLive(name)).toBe(true);
    expect(restarts()).toBe(0);

    // The former process dies: nobody notices but its publish.
    const serving = main();
    await kill(first);
    await until("its publish ends", async () => !(await isLive(name)), WAIT_MS);
    expect(main()).toBe(serving);
    sender.kill("SIGKILL");

    // Without any publish: within 3 s of a reload, and after the former process has ended.
    await reload();
    await kill(main());
    await serves(serving, 0);
    const former = main();
    const alone = await reload();
    await until("the former process ends", () => !isThere(former), WAIT_MS);
    const before = restarts();
    await kill(alone);
    await serves(alone, 0);
    expect(restarts()).toBe(before + 1);

    // All of them at once, with a publish.
    const { sender: lost } = await publish();
    const [one, two] = [main(), await reload()];
    await kill(one, two);
    await serves(one, two);
    expect(restarts()).toBe(before + 2);
    lost.kill("SIGKILL");

    // A stop waits for the publishes of the former process, and is not followed by a start.
    const { sender: last } = await publish();
    await reload();
    booted.systemctl("stop", "--no-block", "headgate");
    await until("it stops", () => shown("ActiveState") === "deactivating");
    await pause(2_000); // absence cannot be awaited
    expect(shown("ActiveState")).toBe("deactivating");
    last.kill("SIGINT");
    expect(await last.exit).not.toBe("SIGKILL");
    await until("it has stopped", () => shown("ActiveState") === "inactive", WAIT_MS);
    expect(shown("Result")).toBe("success");
    await pause(3_000); // absence cannot be awaited
    expect(shown("ActiveState")).toBe("inactive");
  },
  LIMIT_MS,
);
