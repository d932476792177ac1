// The page /broadcast in headless Chromium, with a fake camera or none: every page in a context of its own. What the
// browser would forget is recorded: requests, violations of the page's policy, and the tracks it opened.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { CHROMIUM } from "./browser-programs.ts";

/** Slow machines included. */
const STAGE_LIMIT_MS = 20_000;

/** As ts/broadcast/state.ts has them. */
export type Stage = "off" | "opening" | "ready" | "connecting" | "live" | "reconnecting" | "ended";

export interface BroadcastPage {
  readonly page: Page;
  /** Waits until the page has come to a stage. */
  reaches(stage: Stage): Promise<void>;
  press(): Promise<void>;
  /** What an element says, white space as it is seen. */
  says(selector: string): Promise<string>;
  /** Every URL that was asked for, with the referrer. */
  readonly requests: readonly { readonly url: string; readonly referrer: string }[];
  /** What the policy of the page forbade, and what its script threw. */
  faults(): Promise<readonly string[]>;
  /** `readyState` of every camera, microphone and screen that was ever opened. */
  tracks(): Promise<readonly string[]>;
  /** `held` or `released`, for each time that the screen was asked to stay on. */
  screenLocks(): Promise<readonly string[]>;
}

export interface Pages {
  open(url: string, options?: BrowserContextOptions): Promise<BroadcastPage>;
  close(): Promise<void>;
}

/** `cameras`: how many the machine has. `answer`: what its owner says when a page wants camera, microphone or screen. */
export async function startPages(given: { cameras?: number; answer?: "allow" | "deny" } = {}): Promise<Pages> {
  const { cameras = 2, answer = "allow" } = given;
  const browser: Browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      `--use-fake-device-for-media-stream=device-count=${cameras},fps=25`,
      // Without a person and without this a headless browser denies.
      ...(answer === "allow" ? ["--use-fake-ui-for-media-stream"] : []),
      "--allow-loopback-in-peer-connection",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
  return {
    async open(url, options = {}) {
      const context = await browser.newContext(options);
      await context.addInitScript(record);
      const page = await context.newPage();
      const requests: { url: string; referrer: string }[] = [];
      const thrown: string[] = [];
      page.on("request", (request) => {
        requests.push({ url: request.url(), referrer: request.headers()["referer"] ?? "" });
      });
      page.on("pageerror", (error) => thrown.push(error.message));
      await page.goto(url);
      return {
        page,
        requests,
        async reaches(stage) {
          await page.waitForSelector(`body[data-stage=${stage}]`, { timeout: STAGE_LIMIT_MS });
        },
        press: () => page.click("#primary"),
        says: async (selector) => (await page.innerText(selector)).replaceAll(/\s+/g, " ").trim(),
        async faults() {
          return [...thrown, ...((await page.evaluate("recorded.violations")) as string[])];
        },
        screenLocks: () => page.evaluate("recorded.locks.map(({ released }) => (released ? 'released' : 'held'))"),
        tracks: () => page.evaluate("recorded.tracks.map((track) => track.readyState)"),
      };
    },
    close: () => browser.close(),
  };
}

/** Runs in the page before its own script. */
const record = `
  globalThis.recorded = { violations: [], tracks: [], locks: [] };
  addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
    recorded.violations.push(violatedDirective + " " + blockedURI);
  });
  for (const name of ["getUserMedia", "getDisplayMedia"]) {
    const open = navigator.mediaDevices?.[name].bind(navigator.mediaDevices);
    if (open) navigator.mediaDevices[name] = async (wanted) => {
      const stream = await open(wanted);
      recorded.tracks.push(...stream.getTracks());
      return stream;
    };
  }
  const lock = navigator.wakeLock?.request.bind(navigator.wakeLock);
  if (lock) navigator.wakeLock.request = async (kind) => {
    const held = await lock(kind);
    recorded.locks.push(held);
    return held;
  };
`;
