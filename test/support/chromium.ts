// Headless Chromium as a WebRTC broadcaster: fake devices, a moving noise clip as camera, and a plain page as its site.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import type { BroadcasterNetwork } from "./broadcaster-network.ts";
import { BROADCASTER } from "./browser-programs.ts";

/** Noise makes the encoder need its full bitrate; the clip is looped. */
const CLIP = "testsrc2=size=1280x720:rate=25,noise=alls=2:allf=t";
const CLIP_SECONDS = 3;

export interface Broadcaster {
  /** Presses Start: the answer's status, and the problem document of a refusal. */
  start(): Promise<{ readonly status: number; readonly session?: string; readonly problem?: Record<string, unknown> }>;
  /** Presses Stop: the DELETE's status. */
  stop(): Promise<number>;
  state(): Promise<string>;
  /** `getStats` of the connection. */
  stats(): Promise<readonly Record<string, unknown>[]>;
  /** Kills the page's process, like a crash. */
  kill(): Promise<void>;
  readonly page: Page;
}

export interface Chromium {
  /** Opens a page that will publish to `whip`, a complete WHIP URL. Another `site` may need a `client`. */
  open(
    whip: string,
    options?: {
      readonly keep?: "resolution";
      readonly stereo?: boolean;
      readonly site?: string;
      readonly client?: string;
    },
  ): Promise<Broadcaster>;
  /** For other pages of a test in this browser. */
  readonly context: BrowserContext;
  /** Stops all its processes, like a sleeping laptop; the returned function resumes them. */
  sleep(): () => void;
  close(): Promise<void>;
}

/** `switches` are added to the command line; with a `network` the browser runs in it. */
export async function startChromium(
  switches: readonly string[] = [],
  network?: Pick<BroadcasterNetwork, "host" | "within">,
): Promise<Chromium> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-chromium-"));
  const { host = "127.0.0.1", within = [] } = network ?? {};
  const clip = makeClip();
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(readFileSync("test/fixtures/broadcast.html"));
  });
  await new Promise<void>((resolve) => site.listen(0, host, resolve));
  const origin = `http://${host}:${(site.address() as AddressInfo).port}`;
  const context: BrowserContext = await chromium.launchPersistentContext(folder, {
    executablePath: within.length === 0 ? BROADCASTER : scriptFor([...within, BROADCASTER], folder),
    headless: true,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--use-fake-ui-for-media-stream",
      "--use-fake-device-for-media-stream=device-count=1,fps=25",
      `--use-file-for-fake-video-capture=${clip}`,
      "--allow-loopback-in-peer-connection",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      // Cameras are available only to local pages or over TLS.
      `--unsafely-treat-insecure-origin-as-secure=${origin}`,
      ...switches,
    ],
  });
  return {
    context,
    sleep() {
      const group = -processGroupOf(folder);
      process.kill(group, "SIGSTOP");
      return () => process.kill(group, "SIGCONT");
    },
    async open(whip, { keep, stereo, site: other, client } = {}) {
      const page = await context.newPage();
      const query = new URLSearchParams({
        whip,
        ...(keep ? { keep } : {}),
        ...(stereo ? { stereo: "1" } : {}),
        ...(client ? { client } : {}),
      });
      await page.goto(`${other ?? origin}/?${query}`);
      const call = <T>(expression: string) => page.evaluate(expression) as Promise<T>;
      return {
        page,
        start: () => call("broadcast.start()"),
        stop: () => call("broadcast.stop()"),
        state: () => call("broadcast.state()"),
        stats: () => call("broadcast.stats()"),
        async kill() {
          // The page's process is gone before it can send anything; the navigation itself never ends.
          await page.goto("chrome://kill").catch(() => {});
        },
      };
    },
    async close() {
      await context.close();
      await new Promise((resolve) => site.close(resolve));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A script that calls a program with further words in front. */
function scriptFor(words: readonly string[], folder: string): string {
  const script = join(folder, "chromium.sh");
  writeFileSync(script, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`, { mode: 0o755 });
  return script;
}

/** Process group of the browser whose command line names the folder. */
function processGroupOf(folder: string): number {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      if (!words.includes(`--user-data-dir=${folder}`) || words.some((word) => word.startsWith("--type="))) continue;
      // proc(5): the fifth field, after the name in parentheses.
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
    } catch {
      // It has ended in the meantime.
    }
  }
  throw new Error("no such browser");
}

/** Made once per machine: the same clip for every test. */
function makeClip(): string {
  const clip = join(tmpdir(), "headgate-noise-clip-2.mjpeg");
  if (!existsSync(clip)) {
    const source = ["-f", "lavfi", "-i", CLIP, "-t", String(CLIP_SECONDS)];
    const part = `${clip}.${process.pid}`;
    execFileSync("ffmpeg", ["-v", "error", "-y", ...source, "-c:v", "mjpeg", "-q:v", "4", "-f", "mjpeg", part]);
    execFileSync("mv", [part, clip]);
  }
  return clip;
}
