// The overview, the first page of the dashboard: quiet while all is well, and naming what is wrong otherwise; and the
// banner above every page while the webhook fails or the node drains. Real Chromium, real service, real ffmpeg.
import axe from "axe-core";
import { afterAll, expect, test, vi } from "vitest";
import { type Child, until } from "../support/child.ts";
import { type DashboardPage, useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";

vi.setConfig({ testTimeout: 120_000 });
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1_440, height: 900 };

// A drain lasts as long as the test that needs one.
const dashboard = useDashboard({ HEADGATE_DRAIN_S: "120" });
const { open } = dashboard;
const encoders: Child[] = [];
afterAll(async () => {
  for (const encoder of encoders) {
    encoder.kill("SIGKILL");
    await encoder.exit;
  }
});

async function newStream(upstream?: string): Promise<{ readonly id: string; readonly name: string }> {
  const { id, ingest } = (await dashboard.headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  if (upstream !== undefined)
    await dashboard.headgate.call("POST", `/stream/${id}/upstream`, { url: upstream, label: "Main channel" });
  return { id, name: ingest.rtmp.streamname };
}

const figure = (dash: DashboardPage, name: string) => dash.says(`[data-figure="${name}"]`);
/** Waits for what the page shows, and makes it load now and then, as when the tab becomes visible: a load that is still
 *  running would begin anew. */
async function untilLoaded({ page }: DashboardPage, what: string, isShown: () => Promise<boolean>): Promise<void> {
  let renewedAt = Number.NEGATIVE_INFINITY;
  const look = async () => {
    if (performance.now() - renewedAt > 2_000) {
      await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
      renewedAt = performance.now();
    }
    return isShown();
  };
  await until(what, look, 60_000);
}

/** What is wrong with the looks of the page in both schemes and at both widths. */
async function faultsOfLooks({ page }: DashboardPage): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const found: string[] = [];
  for (const viewport of [PHONE, DESKTOP]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      // What surrounds every page is checked by test/dashboard/whole/dashboard-looks.test.ts.
      const { violations } = (await page.evaluate(`axe.run("main")`)) as axe.AxeResults;
      found.push(...violations.map(({ id, nodes }) => `${colorScheme}: ${id} ${nodes.map(({ html }) => html).join()}`));
    }
    const beyond = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    if (beyond !== 0) found.push(`${beyond} px beyond ${viewport.width} px`);
  }
  return found;
}

test("a quiet organisation is told so, on the first page", async () => {
  const dash = await open("/dashboard/", "readonly", { viewport: DESKTOP });
  await dash.shows("Overview");
  await until("the figures", async () => /^0 streams are live$/.test(await figure(dash, "live")));
  expect(await figure(dash, "refused")).toBe("0 publishes and plays");
  expect(await figure(dash, "latency")).toBe("– no calls");
  expect(await figure(dash, "upstreams")).toBe("0 down: no live stream has an upstream");
  expect(await dash.says(".banners")).toBe("");
  expect(await dash.page.locator("nav [aria-current=page]").innerText()).toBe("Overview");
  expect(await faultsOfLooks(dash)).toEqual([]);
  expect(await dash.faults()).toEqual([]);
});

test("what is wrong is named: streams and upstreams at once, refusals and the webhook with where to look", async () => {
  const { headgate, customer } = dashboard;
  const fine = await newStream();
  const troubled = await newStream("rtmp://127.0.0.1:9/live/secret");
  const locked = await newStream();
  await headgate.call("PUT", `/stream/${locked.id}/lock`);
  encoders.push(broadcast(`${headgate.rtmp}/${fine.name}`, { seconds: 600 }));
  encoders.push(broadcast(`${headgate.rtmp}/${troubled.name}`, { seconds: 600, gop: 125 }));
  for (let times = 0; times < 2; times += 1) await broadcast(`${headgate.rtmp}/${locked.name}`, { seconds: 2 }).exit;

  const dash = await open("/dashboard/overview", "readonly", { viewport: DESKTOP });
  const { page } = dash;
  const live = page.getByRole("region", { name: "Live now" });
  await until(
    "both findings",
    async () => /Main channel.*Keyframes are 5\.0 s apart/s.test(await live.innerText()),
    60_000,
  );
  expect(await figure(dash, "live")).toBe("2 streams are live, 1 needs attention");
  expect(await live.locator(".overview-list > li > a").allInnerTexts()).toEqual([troubled.name]);
  expect(await figure(dash, "upstreams")).toBe("1 down, 0 receive their streams");
  await untilLoaded(dash, "the refusals", async () => (await figure(dash, "refused")) === "2 publishes and plays");
  expect(await figure(dash, "latency")).toMatch(/^\d+ ms median of the latest \d calls, the slowest took \d+ ms$/);

  customer.answer({ status: 500 });
  await headgate.call("POST", "/organisation/webhook/test", {});
  await untilLoaded(dash, "the banner", async () =>
    /Your webhook fails: it answers 500\./.test(await dash.says(".banners")),
  );
  await until("the failure", async () =>
    /1 refused or failed/.test(await page.getByRole("region", { name: "Webhook in the last hour" }).innerText()),
  );
  expect(await faultsOfLooks(dash)).toEqual([]);

  // By keyboard, to the refusals of that reason and hour.
  await page.getByRole("link", { name: "Stream locked" }).focus();
  await page.keyboard.press("Enter");
  await dash.shows("Refusals");
  expect(new URL(page.url()).searchParams.get("reason")).toBe("locked_stream");
  await until("that reason alone", async () => (await page.locator("tbody tr").count()) === 1);
  expect(await dash.says(".banners")).toContain("Your webhook fails");
  await dash.press("See the call");
  await dash.shows("Publish request");
  expect(await dash.faults()).toEqual([]);
});

test("while the node drains every page says so, and the banner of the webhook is gone after a call that succeeds", async () => {
  const { headgate, customer } = dashboard;
  customer.answer({ status: 200 });
  const dash = await open("/dashboard/settings", "readonly");
  await dash.shows("Settings");
  await headgate.call("POST", "/organisation/webhook/test", {});
  headgate.process.kill("SIGTERM");
  await untilLoaded(dash, "the banner", async () => /^This Headgate is draining/.test(await dash.says(".banners")));
  expect(await faultsOfLooks(dash)).toEqual([]);
});
