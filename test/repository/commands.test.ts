// The commands that people type.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Child, start, until } from "../support/child.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { isAlive } from "../support/is-alive.ts";

const env = (dataDir: string) => ({
  ...process.env,
  HEADGATE_DATA_DIR: dataDir,
  HEADGATE_HTTP_PORT: "0",
  HEADGATE_RTMP_PORT: "0",
  HEADGATE_MEDIA_PORT: "0",
  HEADGATE_METRICS_PORT: "0",
  HEADGATE_DRAIN_S: "0",
});

/** Pids of a process and all its descendants. */
function familyOf(pid: number): readonly number[] {
  const rows = execFileSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  const pairs = rows.map((row) => row.trim().split(/\s+/).map(Number));
  const family = [pid];
  for (const parent of family) {
    family.push(...pairs.filter(([, above]) => above === parent).map(([child]) => child ?? 0));
  }
  return family;
}

const folders = [0, 1].map(() => mkdtempSync(join(tmpdir(), "headgate-start-")));
const [first, second] = folders as [string, string];
let npm: Child;
let ready: { readonly http: string; readonly rtmp: string };

beforeAll(async () => {
  npm = start("npm", ["start", "--silent"], { env: env(first) });
  const line = await until(
    "ready",
    () =>
      npm
        .stdout()
        .split("\n")
        .find((text) => text.startsWith("{")),
    60_000,
  );
  ready = JSON.parse(line);
});
afterAll(() => {
  npm.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

test("a second start on the same ports says which one is taken and exits with 3", async () => {
  const late = start(process.execPath, ["scripts/headgate.mjs", "serve"], {
    env: { ...env(second), HEADGATE_RTMP_PORT: new URL(ready.rtmp).port },
  });
  expect(await late.exit).toBe(3);
  expect(late.stderr()).toContain("(rtmp.port): it is in use by another program");
  expect(late.stderr()).not.toMatch(/hg_\w+/);
  // The first start that succeeds shows the key and password of the new store.
  const again = start(process.execPath, ["scripts/headgate.mjs", "serve"], { env: env(second) });
  await until(
    "it runs and has shown both",
    () =>
      /hg_\w+.*The dashboard is at http:\S+\/dashboard\/\n.*signs in as admin/s.test(again.stderr()) && again.stdout(),
  );
  again.kill("SIGTERM");
  expect(await again.exit).toBe(0);
});

test("SIGTERM to npm start ends all its processes during a publish, and leaves no orphan", async () => {
  const { http, rtmp } = ready;
  const key = /hg_\w+/.exec(npm.stderr())?.[0] ?? "";
  const answer = await fetch(`${http}/stream`, { method: "POST", headers: { "x-service-apikey": key } });
  const stream = (await answer.json()) as { ingest: { rtmp: { streamname: string } } };
  const encoder = broadcast(`${rtmp}/${stream.ingest.rtmp.streamname}`, { seconds: 30 });
  await until("the publish runs", () => npm.stderr().includes("publish started"));
  const family = familyOf(npm.pid);
  npm.kill("SIGTERM");
  await npm.exit;
  await until("all of them are gone", () => !family.some(isAlive), 5_000);
  await expect(fetch(http)).rejects.toThrow();
  await encoder.exit;
});

test("help names the commands, and a wrong setting is an error with the nearest name", async () => {
  const help = start(process.execPath, ["scripts/headgate.mjs", "--help"]);
  expect(await help.exit).toBe(0);
  expect(help.stdout()).toContain("serve");
  const wrong = start(process.execPath, ["scripts/headgate.mjs", "config", "check"], {
    env: { ...process.env, HEADGATE_RTMP_PROT: "1935" },
  });
  expect(await wrong.exit).toBe(2);
  expect(wrong.stderr()).toContain("did you mean HEADGATE_RTMP_PORT?");
});
