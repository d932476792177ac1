// One judgement of health: a stream with a keyframe every 5 s, audio 150 ms behind its video and 2 % loss has the same
// findings in the list, on its page, in the overview, in the timeline, in `headgate explain`, in the API and in the
// metrics. The service is the real one over a media core that only counts; the dashboard runs in Chromium.
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { addApiKey } from "../../ts/organisation/api-keys.ts";
import { HEADLESS_SHELL } from "../support/browser-programs.ts";
import { run } from "../support/child.ts";
import { openStage, STREAM, type Stage } from "../support/publishing.ts";

const PERSON = { email: "dora@customer.example", password: "correct horse battery staple" };
const ID = `stream ${STREAM}`;
const STEP_MS = 5_000;
const FINDINGS = [
  ["keyframes_rare", "Keyframes are 5.0 s apart"],
  ["packet_loss", "2 % of the packets are lost"],
  ["audio_video_apart", "Video and audio are 150 ms apart"],
] as const;
const CODES = FINDINGS.map(([code]) => code);
const WORDS = FINDINGS.map(([, words]) => words);

let stage: Stage;
let server: ReturnType<typeof createAdaptorServer>;
let browser: Browser;
let url = "";
let key = "";
let clientId = 0;

interface Shown {
  readonly findings: readonly { readonly code: string; readonly words: string; readonly severity: string }[];
}

beforeAll(async () => {
  const env = { HEADGATE_LIMITS_API_REQUESTS_PER_SECOND: "0" };
  stage = await openStage({ webhook: null, ca: null, env });
  const organisationId = "org1";
  key = (await addApiKey(stage.db, { organisationId, role: "administrator", now: stage.clock.ms })).key;
  server = createAdaptorServer(stage.service.app);
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  url = `http://localhost:${(server.address() as AddressInfo).port}`;
  await call("POST", "/organisation/user", { ...PERSON, role: "readonly" });
  clientId = await stage.allowed(STREAM);
  for (let second = 0; second <= 60; second += STEP_MS / 1_000) {
    stage.media.measure(clientId, {
      ...{ bytesIn: second * 250_000, videoFrames: second * 25, gopMs: 5_000, skewMs: 150, lossPercent: 2 },
      tracks: {
        video: { codec: "H264", width: 1_280, height: 720 },
        audio: { codec: "Opus", sampleRate: 48_000, channels: 2 },
      },
    });
    stage.clock.ms += STEP_MS;
    stage.service.measurements.addPoints();
  }
  browser = await chromium.launch({ executablePath: HEADLESS_SHELL, args: ["--no-sandbox", "--disable-gpu"] });
}, 120_000);
afterAll(async () => {
  await browser?.close();
  server?.close();
  await stage?.close();
});

async function call(method: string, path: string, body?: object): Promise<unknown> {
  const headers = { "x-service-apikey": key, "content-type": "application/json" };
  const answer = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  expect(answer.status).toBe(200);
  return await answer.json();
}

async function opened(path: string): Promise<Page> {
  const context = await browser.newContext({ reducedMotion: "reduce" });
  const answer = await context.request.post(`${url}/login`, { data: PERSON });
  expect(answer.ok()).toBe(true);
  const page = await context.newPage();
  await page.goto(url + path);
  return page;
}

test("the same stream has the same findings in list, page, overview, timeline, explain, API and metrics", async () => {
  const [listed] = (await call("GET", "/session")) as [Shown];
  const shown = (await call("GET", `/session/${clientId}`)) as Shown;
  const timeline = (await call("GET", `/session/${clientId}/timeline`)) as Shown & {
    readonly moments: readonly { readonly what: string; readonly figures: { readonly is_over?: boolean } }[];
  };
  for (const { findings } of [listed, shown, timeline]) {
    expect(findings.map(({ words }) => words)).toEqual(WORDS);
    expect(findings.map(({ severity }) => severity)).toEqual(["attention", "attention", "attention"]);
  }
  const lasting = timeline.moments.filter(({ figures }) => figures.is_over === false).map(({ what }) => what);
  expect([...lasting].sort()).toEqual([...CODES].sort());

  const metrics = await stage.metrics.registry.metrics();
  const counted = [...metrics.matchAll(/^headgate_publish_troubles\{trouble="(\w+)"\} 1$/gm)].map(([, code]) => code);
  expect(counted.sort()).toEqual([...CODES].sort());

  const env = { PATH: process.env.PATH, HEADGATE_API_KEY: key };
  const words = ["scripts/headgate.mjs", "explain", String(clientId), "--url", url];
  const explained = (await run(process.execPath, words, { env })).stdout();
  for (const each of WORDS) expect(explained).toContain(`${each}. `);

  const list = await opened("/dashboard/streams");
  const condition = list.locator(".stream-row .condition");
  await condition.waitFor();
  expect(await condition.innerText()).toBe("Rare keyframes, 2 more");
  expect((await condition.getAttribute("title"))?.split("\n")).toEqual(WORDS);
  const page = await opened(`/dashboard/streams/${encodeURIComponent(ID)}`);
  await page.locator(".findings .note.attention").first().waitFor();
  expect(await page.locator(".findings strong").allInnerTexts()).toEqual(WORDS);
  const overview = await opened("/dashboard/");
  const troubles = overview.locator(".overview-list .condition");
  await troubles.first().waitFor();
  expect((await troubles.allInnerTexts()).map((text) => text.replace(/\s+since .*/s, ""))).toEqual(WORDS);
}, 60_000);
