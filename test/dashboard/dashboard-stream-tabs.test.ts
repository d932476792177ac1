// The tabs of a stream's page: what is needed while it is live fits on the first screen, each tab has an address, and all
// of them work with the keyboard and pass axe. Real Chromium, real service, ffmpeg.
import axe from "axe-core";
import { expect, test, vi } from "vitest";
import { until } from "../support/child.ts";
import { useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";

vi.setConfig({ testTimeout: 90_000 });
const SIZES = [
  { width: 1_440, height: 900 },
  { width: 390, height: 844 },
];

const dashboard = useDashboard();

interface Stream {
  readonly id: string;
  readonly ingest: { readonly rtmp: { readonly url: string; readonly streamname: string } };
}
const newStream = async () => (await dashboard.headgate.call("POST", "/stream")) as unknown as Stream;
const isLive = async ({ id }: Stream) => (await dashboard.headgate.call("GET", `/stream/${id}`))["state"] === "live";

test("the first screen of a live stream has its picture, diagnosis, figures and End, on a desktop and on a phone", async () => {
  const stream = await newStream();
  const encoder = broadcast(`${dashboard.headgate.rtmp}/${stream.ingest.rtmp.streamname}`, { seconds: 60 });
  await until("live", () => isLive(stream));
  for (const viewport of SIZES) {
    const { page } = await dashboard.open(`/dashboard/streams/${stream.id}`, "administrator", { viewport });
    const needed = [
      page.getByRole("button", { name: "End broadcast" }),
      page.getByRole("tab", { name: "Live" }),
      page.locator("video"),
      page.getByRole("status", { name: "Diagnosis" }),
      page.getByText("Bitrate", { exact: true }).first(),
    ];
    await page.locator(".now .facts").waitFor();
    for (const each of needed) {
      await each.waitFor();
      const { x = -1, y = -1, width = 0, height = 0 } = (await each.boundingBox()) ?? {};
      expect({
        needed: `${each}`,
        at: [x >= 0, y >= 0, x + width <= viewport.width, y + height <= viewport.height],
      }).toEqual({ needed: `${each}`, at: [true, true, true, true] });
    }
  }
  encoder.kill("SIGTERM");
  await encoder.exit;
});

test("each tab has an address, opens with the arrow keys, and passes axe", async () => {
  const stream = await newStream();
  const path = `/dashboard/streams/${stream.id}`;
  const { page, ...dash } = await dashboard.open(path, "administrator");
  const open = () => page.getByRole("tablist", { name: "Stream" }).locator("[aria-selected=true]").innerText();
  await page.getByRole("tab", { name: "Live" }).waitFor();
  expect(await open()).toBe("Connect");
  await page.evaluate(axe.source);
  await page.getByRole("tab", { name: "Connect" }).focus();
  for (const [title, tab] of [
    ["Links", "links"],
    ["Live", "live"],
    ["History", "history"],
    ["Connect", "connect"],
  ] as const) {
    await page.keyboard.press("ArrowRight");
    await until(title, async () => (await open()) === title);
    expect(new URL(page.url()).searchParams.get("tab")).toBe(tab);
    expect(await page.evaluate("document.activeElement.textContent")).toBe(title);
    await until("it is loaded", async () => (await page.locator(".loading").count()) === 0);
    const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    expect(serious.map(({ id, nodes }) => `${title}: ${id} ${nodes.map(({ html }) => html)}`)).toEqual([]);
  }
  await page.goto(`${dashboard.headgate.http}${path}?tab=history`);
  await page.getByText("Nobody has broadcast to it yet").waitFor();
  await page.goto(`${dashboard.headgate.http}${path}?from=2026-01-31T14:00Z`);
  await page.getByText("Nothing happened at this time").waitFor();
  await dash.press("Clear the filter");
  await until("the address", () => page.url().endsWith(`${path}?tab=history`));
  expect(await dash.faults()).toEqual([]);
});

test("a stream whose page has no tab in its address goes over to Live when it goes live", async () => {
  const stream = await newStream();
  const { page } = await dashboard.open(`/dashboard/streams/${stream.id}`, "readonly");
  await page.getByRole("heading", { name: "How to broadcast" }).waitFor();
  expect(await page.getByRole("tab").allInnerTexts()).toEqual(expect.not.arrayContaining(["Links"]));
  const encoder = broadcast(`${dashboard.headgate.rtmp}/${stream.ingest.rtmp.streamname}`, { seconds: 60 });
  await page.locator("video").waitFor();
  encoder.kill("SIGTERM");
  await encoder.exit;
});
