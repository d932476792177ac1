// How a service is stopped from outside, by a person or a service manager: ^C in a terminal, SIGTERM to the
// whole process group, SIGTERM to one process. Each lets the running publish end; a second one a second later
// does not.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { provideRuntime } from "../../../scripts/runtimes.mjs";
import { until } from "../../support/child.ts";
import { type Broadcast, broadcast } from "../../support/ffmpeg.ts";
import { pause } from "../../support/pause.ts";

const DRAIN_S = 60;
/** A publish that is to end by itself, and one that is not; s. */
const SHORT_S = 4;
const LONG_S = 50;
/** A signal within this time counts as the same one, ms. */
const SAME_SIGNAL_MS = 1_000;
/** After a second one, ms: 2 s for the service, and slack for a busy machine. */
const SECOND_LIMIT_MS = 4_000;
const CTRL_C = "\x03";

const runtime = process.env.TEST_RUNTIME;
/** `npm start`, or what it runs under another runtime. */
const COMMAND = runtime === undefined ? ["npm", "start"] : [...provideRuntime(runtime), "scripts/start.mjs"];

interface Started {
  readonly child: ChildProcess;
  readonly exit: Promise<number | string>;
  /** Standard output and error. */
  said(): string;
  /** Resolves when the service is running. */
  publish(seconds: number): Promise<Broadcast>;
}

type AtEnd = (clean: () => void) => void;

/** A process group of its own, whose first process is the command. */
async function start(words: readonly string[], atEnd: AtEnd): Promise<Started> {
  const dataDir = mkdtempSync(join(tmpdir(), "headgate-signals-"));
  const apiKey = `test-${randomBytes(24).toString("hex")}`;
  const ports = ["HTTP", "RTMP", "METRICS", "NODE", "MEDIA"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
  const hosts = ["HTTP", "RTMP", "MEDIA"].map((name) => [`HEADGATE_${name}_HOST`, "127.0.0.1"]);
  const [program = "", ...args] = words;
  const child = spawn(program, args, {
    detached: true,
    stdio: "pipe",
    env: {
      ...{ PATH: process.env.PATH, HOME: dataDir, TERM: "dumb", ...Object.fromEntries([...ports, ...hosts]) },
      ...{ HEADGATE_DATA_DIR: dataDir, HEADGATE_BOOTSTRAP_API_KEY: apiKey, HEADGATE_DRAIN_S: String(DRAIN_S) },
      ...{ HEADGATE_LIMITS_LOAD_PERCENT: "0", HEADGATE_LOG_FORMAT: "json", HEADGATE_MEDIA_WORKERS: "1" },
    },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (more: string) => {
      text += more;
    });
  }
  const exit = once(child, "close").then(([code, signal]) => (code ?? signal) as number | string);
  atEnd(() => {
    endGroup(Number(child.pid));
    rmSync(dataDir, { recursive: true, force: true });
  });
  const ready = /"http":"(?<http>[^"]+)","rtmp":"(?<rtmp>[^"]+)"|ready: (?<page>\S+)\/dashboard\/, RTMP (?<url>[^,]+),/;
  const { http, rtmp, page, url } = await until("it is ready", () => ready.exec(text)?.groups, 60_000);
  return {
    child,
    exit,
    said: () => text,
    async publish(seconds) {
      const answer = await fetch(`${http ?? page}/stream`, { method: "POST", headers: { "x-service-apikey": apiKey } });
      const { ingest } = (await answer.json()) as { ingest: { rtmp: { streamname: string } } };
      const encoder = broadcast(`${rtmp ?? url}/${ingest.rtmp.streamname}`, { seconds, size: "160x90" });
      atEnd(() => encoder.kill("SIGKILL"));
      await until("the publish runs", () => text.includes("publish started"));
      return encoder;
    },
  };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has exited.
  }
}

/** Under `script` the command has a terminal of its own. */
const TERMINAL = ["script", "--quiet", "--return", "--command", `exec ${COMMAND.join(" ")}`, "/dev/null"];

const WAYS: readonly (readonly [name: string, words: readonly string[], tell: (child: ChildProcess) => void])[] = [
  ["^C in a terminal", TERMINAL, (child) => child.stdin?.write(CTRL_C)],
  ["SIGTERM to the process group", COMMAND, (child) => process.kill(-Number(child.pid), "SIGTERM")],
  ["SIGTERM to one process", COMMAND, (child) => child.kill("SIGTERM")],
];

test.concurrent.for(WAYS)(
  "one %s lets the running publish end, and then the service exits with 0",
  async ([_, words, tell], { onTestFinished }) => {
    const service = await start(words, onTestFinished);
    const encoder = await service.publish(SHORT_S);
    tell(service.child);
    expect(await encoder.exit, encoder.stderr()).toBe(0);
    expect(await service.exit, service.said()).toBe(0);
    expect(service.said()).toMatch(/"running":1,"limitS":60[^\n]*draining/);
    expect(service.said()).toMatch(/"running":0[^\n]*drained/);
  },
);

test.concurrent.for(WAYS)("a second %s does not wait for it", async ([_, words, tell], { onTestFinished }) => {
  const service = await start(words, onTestFinished);
  const encoder = await service.publish(LONG_S);
  tell(service.child);
  await until("it drains", () => service.said().includes("draining: no new publish"));
  await pause(SAME_SIGNAL_MS + 200); // only then is it a second one: the time is what is tested
  const again = performance.now();
  tell(service.child);
  expect(await service.exit, service.said()).toBe(0);
  expect(performance.now() - again).toBeLessThan(SECOND_LIMIT_MS);
  expect(await encoder.exit).not.toBe(0);
});
