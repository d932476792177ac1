// A service that is the first process of a container, whose end is that of all others in it: after an upgrade it stays,
// passes signals on, and ends as the service does. In a process namespace, as containers are.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { outlivesSuccessors } from "../../ts/handover/inherited.ts";
import { until } from "../support/child.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { type Headgate, startHeadgate } from "../support/headgate.ts";
import { isWholeRun } from "../support/whole-run.ts";

const LONG_MS = 180_000;
const START_MS = 90_000;
const WITHIN = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

let headgate: Headgate | null = null;
afterEach(async () => {
  headgate?.process.kill("SIGKILL");
  await headgate?.process.exit;
  headgate = null;
});

function isAllowed(): boolean {
  try {
    execFileSync(WITHIN[0] ?? "", [...WITHIN.slice(1), "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(/\s+/).filter(Boolean).map(Number);
const logged = (service: Headgate, text: string) =>
  until(text, () => service.process.stderr().includes(text), START_MS);

/** An upgraded service whose first process has no publish any more; the first and the new one, by ids outside. */
async function upgraded(): Promise<{ readonly service: Headgate; readonly first: number; readonly next: number }> {
  const service = await startHeadgate({ within: WITHIN, env: { HEADGATE_DRAIN_S: "60" } });
  headgate = service;
  const [first = 0] = childrenOf(service.process.pid);
  await service.command(["upgrade"]);
  await logged(service, '"former":"leaving","state":"stopped"');
  const [next = 0] = childrenOf(first);
  return { service, first, next };
}

const testInNamespace = test.runIf(isAllowed());

testInNamespace(
  "the first process stays after an upgrade, and a SIGTERM to it drains the new one",
  async () => {
    const { service, first } = await upgraded();
    const encoder = broadcast(`${service.rtmp}/${await service.newStream()}`, { seconds: 8, size: "160x90" });
    await logged(service, "publish started");
    process.kill(first, "SIGTERM");
    await logged(service, '"former":"ready","state":"draining"');
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    expect(await service.process.exit).toBe(0);
  },
  LONG_MS,
);

test.runIf(isWholeRun && isAllowed())(
  "the container ends with 1 when the new process dies after the first one's last publish",
  async () => {
    const { service, next } = await upgraded();
    process.kill(next, "SIGKILL");
    expect(await service.process.exit).toBe(1);
  },
  LONG_MS,
);

test.each([
  ["the first process of a container", { pid: 1, ppid: 0 }, {}, true],
  ["a process that the init process of a container watches", { pid: 7, ppid: 1 }, {}, true],
  ["a service of systemd", { pid: 700, ppid: 1 }, { manager: "/run/systemd/notify" }, false],
  ["a successor whose parent has exited", { pid: 8, ppid: 1 }, { isSuccessor: true }, false],
  ["a process of a terminal", { pid: 700, ppid: 650 }, {}, false],
])("whether %s outlives its successors", (_, self, inherited, outlives) => {
  expect(outlivesSuccessors({ isSuccessor: false, manager: null, ...inherited }, self)).toBe(outlives);
});
