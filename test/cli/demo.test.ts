// `headgate demo`: a test picture is live within a minute, ^C ends everything, and nothing of it is left.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Child, run, start, until } from "../support/child.ts";
import { inWholeRun } from "../support/whole-run.ts";

let folder: string;
const started: Child[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-of-demo-"));
});
afterEach(async () => {
  for (const child of started.splice(0)) {
    child.kill("SIGTERM");
    await child.exit;
  }
  rmSync(folder, { recursive: true, force: true });
});

const PATH = process.env.PATH ?? "";

/** Settings of a service of the person must not reach the demonstration. */
function demo(words: readonly string[], path = PATH): Child {
  const env = { PATH: path, TMPDIR: folder, HEADGATE_DATA_DIR: join(folder, "mine"), HEADGATE_HTTP_PORT: "1" };
  const child = start(process.execPath, ["scripts/headgate.mjs", "demo", ...words], { env });
  started.push(child);
  return child;
}

interface Shown {
  readonly http: string;
  readonly api_key: string;
  readonly live: boolean;
  readonly play: string;
  readonly dashboard: string;
  readonly broadcast: string;
}

async function shown(child: Child): Promise<Shown> {
  let hasEnded = false;
  void child.exit.then(() => {
    hasEnded = true;
  });
  const line = await until(
    "the addresses",
    () => {
      if (hasEnded) throw new Error(child.stderr());
      return child
        .stdout()
        .split("\n")
        .find((each) => each.startsWith("{"));
    },
    60_000,
  );
  return JSON.parse(line) as Shown;
}

async function ended(child: Child, signal: NodeJS.Signals): Promise<void> {
  expect(readdirSync(folder).some((name) => name.startsWith("headgate-demo-"))).toBe(true);
  child.kill(signal);
  expect([await child.exit, child.stderr()]).toEqual([0, ""]);
  expect(readdirSync(folder)).toEqual([]);
}

test("a test picture can be played, the pages are there, and ^C leaves nothing", async () => {
  const child = demo(["--json"]);
  const { http, api_key, live, play, dashboard, broadcast } = await shown(child);
  expect(live).toBe(true);
  const probe = await run("ffprobe", ["-v", "error", "-show_entries", "stream=codec_name,width", play]);
  expect(probe.stdout()).toMatch(/codec_name=h264\s+width=1280.*codec_name=aac/s);
  for (const page of [dashboard, broadcast, `${http}/docs`]) expect((await fetch(page)).status).toBe(200);
  const sessions = await fetch(`${http}/session`, { headers: { "x-service-apikey": api_key } });
  expect(await sessions.json()).toHaveLength(1);
  await ended(child, "SIGINT");
  await expect(fetch(http)).rejects.toThrow();
}, 120_000);

inWholeRun(
  "without ffmpeg it says so, and serves until SIGTERM",
  async () => {
    const child = demo([], join(folder, "no-programs"));
    await until("the words", () => child.stdout().includes("^C ends it"));
    expect(child.stdout()).toContain("There is no test picture: ffmpeg is not installed.");
    expect(child.stdout()).toContain("/broadcast#token=");
    await ended(child, "SIGTERM");
    expect(existsSync(join(folder, "mine"))).toBe(false);
  },
  120_000,
);

inWholeRun(
  "a signal while it starts leaves nothing either",
  async () => {
    const child = demo([]);
    await until("it starts", () => readdirSync(folder).length > 0);
    await until("its words", () => child.stdout().includes("Starting"));
    await ended(child, "SIGHUP");
  },
  60_000,
);

inWholeRun(
  "it ends by itself after the seconds asked for",
  async () => {
    const child = demo(["--seconds", "0"]);
    expect(await child.exit).toBe(0);
    expect(child.stdout()).toContain("A test picture is live");
    expect(readdirSync(folder)).toEqual([]);
    const wrong = demo(["--seconds", "1e9"]);
    expect([await wrong.exit, wrong.stderr()]).toEqual([2, "headgate: --seconds must be a number from 0 to 86400\n"]);
  },
  60_000,
);

test("nothing on the command line shows the help and exits with 0", async () => {
  const child = await run(process.execPath, ["scripts/headgate.mjs"], { env: { PATH, HEADGATE_DATA_DIR: folder } });
  expect(child.stdout()).toMatch(/^ +demo +See it work/m);
  expect(readdirSync(folder)).toEqual([]);
}, 60_000);

test("a service of a former version that was started without a word finds its successor serving", async () => {
  const ports = ["HTTP", "RTMP", "METRICS", "MEDIA"].map((name) => [`HEADGATE_${name}_PORT`, "0"]);
  const env = { PATH, HEADGATE_DATA_DIR: join(folder, "data"), ...Object.fromEntries(ports) };
  const child = spawn(process.execPath, ["scripts/headgate.mjs"], { env, stdio: ["ignore", "pipe", "ignore", "ipc"] });
  const exit = once(child, "exit");
  const [line] = await once(child.stdout ?? child, "data");
  child.kill("SIGTERM");
  expect(String(line)).toContain('"ready":true');
  expect((await exit)[0]).toBe(0);
}, 60_000);

test("without a folder for its store it says so in one line", async () => {
  const child = start(process.execPath, ["scripts/headgate.mjs", "demo"], {
    env: { PATH, TMPDIR: join(folder, "none") },
  });
  expect(await child.exit).toBe(1);
  const lines = child.stderr().trim().split("\n");
  expect(lines.at(-1)).toMatch(/no folder for its store \(.*\): TMPDIR names another$/);
  expect(child.stderr()).not.toContain("    at ");
});
