// A site of its own, over HTTPS, whose page loads the browser client from the service and is controlled by the test.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { inTime } from "../../ts/in-time.ts";
import type { Chromium } from "./chromium.ts";
import { testCertificates } from "./customer.ts";

/** What one call of the browser client may take, ms: it gives up on a broadcast itself after 30 s. */
const RUN_LIMIT_MS = 45_000;
const UNANSWERED = Symbol("unanswered");

/** What the page's Webcaster has reported so far. */
export interface Said {
  readonly states: readonly string[];
  readonly reconnections: readonly string[];
  readonly errors: readonly { readonly code: number; readonly message: string; readonly detail: string | null }[];
  readonly metrics: readonly {
    readonly liveSec: number;
    readonly reconnects: number;
    readonly isHidden: boolean;
    readonly video: { readonly bitrateBps: number; readonly framesPerSecond: number; readonly height: number } | null;
  }[];
}

export interface WebcasterPage {
  readonly page: Page;
  /** Runs an expression in the page, which may use await and the globals `webcaster`, `sdk` and `said`. */
  run<T = unknown>(expression: string): Promise<T>;
  said(): Promise<Said>;
  state(): Promise<string>;
}

export interface WebcasterSite {
  /** Opens a page with a Webcaster of this configuration. `prepared` runs before any script of the page. */
  open(
    service: string,
    config: Readonly<Record<string, unknown>>,
    options?: { readonly prepared?: string; readonly path?: string },
  ): Promise<WebcasterPage>;
  readonly origin: string;
  close(): Promise<void>;
}

/** Serves the site: `/` is the page, `/no-camera` one that may not use the camera, all other paths are empty. */
export async function serveWebcasterSite(chromium: Chromium): Promise<WebcasterSite> {
  const { key, cert } = testCertificates();
  const server = createServer({ key, cert }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "https://site");
    response.setHeader("content-type", "text/html; charset=utf-8");
    if (pathname === "/no-camera") response.setHeader("permissions-policy", "camera=(), microphone=()");
    response.end(pathname === "/empty" ? "<title>Empty</title>" : pageOf(searchParams.get("service") ?? ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    async open(service, config, { prepared, path = "/" } = {}) {
      const page = await chromium.context.newPage();
      if (prepared !== undefined) await page.addInitScript(prepared);
      await page.goto(`${origin}${path}?service=${encodeURIComponent(service)}`);
      const run = async <T>(expression: string) => {
        const evaluated = page.evaluate(`(async () => (${expression}))()`) as Promise<T>;
        const result = await inTime(RUN_LIMIT_MS, evaluated, UNANSWERED);
        if (result === UNANSWERED) throw new Error(`the page did not finish in time: ${expression}`);
        return result;
      };
      await run(`begin(${JSON.stringify({ serverUrl: service, previewVideoElId: "preview", ...config })})`);
      return {
        page,
        run,
        said: () => run<Said>("said"),
        state: () => run<string>("webcaster.state"),
      };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const pageOf = (service: string) => `<!doctype html>
<meta charset="utf-8">
<title>Broadcast</title>
<video id="preview"></video>
<script type="module">
  const loading = import("${service}/sdk/webcaster.mjs");
  window.said = { states: [], reconnections: [], errors: [], metrics: [] };
  window.begin = async (config) => {
    window.sdk = await loading;
    const webcaster = new sdk.Webcaster(config);
    webcaster.onStateChange = (state) => said.states.push(state);
    webcaster.onReconnectionStateChange = (state) => said.reconnections.push(state);
    webcaster.onMetrics = (metrics) => said.metrics.push(metrics);
    webcaster.onError = ({ code, message, detail }) => said.errors.push({ code, message, detail });
    window.webcaster = webcaster;
  };
</script>
`;
