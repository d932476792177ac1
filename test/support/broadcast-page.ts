// The page /broadcast in headless Chromium, with a fake camera or none, each page in a context of its own. Records what
// the browser would not keep: requests, violations of the page's policy, and the tracks it opened.
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { BROADCASTER } from "./browser-programs.ts";

/** Long enough for slow machines. */
const STAGE_LIMIT_MS = 20_000;

/** The stages of ts/broadcast/state.ts. */
export type Stage = "off" | "opening" | "ready" | "connecting" | "live" | "reconnecting" | "ended";

export interface BroadcastPage {
  readonly page: Page;
  /** Waits until the page has reached a stage. */
  reaches(stage: Stage): Promise<void>;
  press(): Promise<void>;
  /** The text of an element, with white space as displayed. */
  says(selector: string): Promise<string>;
  /** Every requested URL with its referrer. */
  readonly requests: readonly { readonly url: string; readonly referrer: string }[];
  /** Violations of the page's policy, and exceptions of its script. */
  faults(): Promise<readonly string[]>;
  /** `readyState` of every camera, microphone and screen that was ever opened. */
  tracks(): Promise<readonly string[]>;
  /** `held` or `released`, for each screen wake lock that was requested. */
  screenLocks(): Promise<readonly string[]>;
}

export interface Pages {
  open(url: string, options?: BrowserContextOptions): Promise<BroadcastPage>;
  close(): Promise<void>;
}

export interface Machine {
  /** Chromium's program, if it must be another one. */
  readonly program?: string;
  /** Number of the machine's cameras. */
  readonly cameras?: number;
  /** What its user answers when a page requests camera, microphone or screen. */
  readonly answer?: "allow" | "deny";
}

export async function startPages(machine: Machine = {}): Promise<Pages> {
  const { program = BROADCASTER, cameras = 2, answer = "allow" } = machine;
  const browser: Browser = await chromium.launch({
    executablePath: program,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      `--use-fake-device-for-media-stream=device-count=${cameras},fps=25`,
      // Without a user and without this switch a headless browser denies the request.
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
