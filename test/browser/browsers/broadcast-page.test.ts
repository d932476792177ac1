// /broadcast as a broadcaster uses it: real Chromium with a fake camera, the real service, an HTTPS customer
// who decides, ffprobe on the RTMP side.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import axe from "axe-core";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { type Stage, startPages } from "../../support/broadcast-page.ts";
import { type BroadcastStage, openBroadcastStage } from "../../support/broadcast-stage.ts";
import { CHROMIUM } from "../../support/browser-programs.ts";
import { until } from "../../support/child.ts";
import { held } from "../../support/held.ts";
import { casesOfRun, inWholeRun } from "../../support/whole-run.ts";

const PHONE = { viewport: { width: 360, height: 740 } };
const ON_ITS_SIDE = { width: 740, height: 360 };
/** A browser, an encoder and a player share the machine with other load. */
vi.setConfig({ testTimeout: 60_000 });
const REASON = "Your subscription is over";

let stage: BroadcastStage;

beforeAll(async () => {
  // The shell has no screen wake locks and no permission prompts.
  stage = await openBroadcastStage({}, () => startPages({ program: CHROMIUM }));
}, 60_000);
afterEach(() => stage.reset());
afterAll(() => stage?.close());

const refuse = () =>
  stage.customer.answer({ status: 403, body: `${REASON}\n`, headers: { "content-type": "text/plain" } });

test("with a token link and only the keyboard one can go live, be seen by players, and stop and release the camera", async () => {
  const name = await stage.headgate.newStream();
  const token = await stage.newToken(`${name}?passcode=s3cret`);
  const { page, ...broadcast } = await stage.open(`/broadcast#token=${token}`);
  const reachButton = async () => {
    const isThere = () => page.evaluate("document.activeElement.id === 'primary'");
    for (let tabs = 0; tabs < 20 && !(await isThere()); tabs += 1) await page.keyboard.press("Tab");
    expect(await isThere()).toBe(true);
  };
  await reachButton();
  await page.keyboard.press("Enter");
  await broadcast.reaches("ready");
  expect(await broadcast.says("#target")).toBe(`Your link leads to ${name}.`);
  await until("the meter moves", async () => Number(await page.getAttribute("#meter", "aria-valuenow")) > 20);
  await page.keyboard.press("Enter");
  await broadcast.reaches("live");
  expect(await stage.playedVideo(name)).toBe("h264,1280,720");
  expect(await broadcast.says("#badge")).toMatch(/^LIVE \d+:\d\d$/);
  await until("figures", async () => /^\d+(\.\d+)? [kM]bps$/.test(await broadcast.says("#figure-bitrate")));
  expect(await broadcast.says("#figure-resolution")).toBe("1280×720");
  expect(await broadcast.says("#figure-frame-rate")).toMatch(/^\d+ fps$/);
  await until("loss", async () => /^\d+(\.\d)? %$/.test(await broadcast.says("#figure-loss")));
  expect(await broadcast.screenLocks()).toEqual(["held"]);
  await page.keyboard.press("Enter");
  await broadcast.reaches("ended");
  expect(new Set(await broadcast.tracks())).toEqual(new Set(["ended"]));
  expect(await broadcast.screenLocks()).toEqual(["released"]);
  expect(await broadcast.faults()).toEqual([]);
  await until("publish_done", () => stage.customer.calls("publish_done").find(({ body }) => body.includes(name)));
  expect(stage.customer.calls("publish").at(-1)?.body).toMatch(/^passcode=s3cret&call=publish&/);

  const secret = token.split(".")[1] ?? "";
  expect(broadcast.requests.filter(({ url, referrer }) => url.includes(secret) || referrer !== "")).toEqual([]);
  expect(page.url()).toBe(`${stage.headgate.http}/broadcast`);
  expect(stage.headgate.process.stderr()).not.toContain(secret);
  await page.reload();
  expect(await broadcast.says("#target")).toBe(`Your link leads to ${name}.`);
});

test("a link shows the title of its stream, as text and in whatever direction, and webhook calls never contain it", async () => {
  const title = "<b>مساء</b> \u202eEvening show";
  const created = { title, external_id: "event-4711" };
  const { ingest } = (await stage.headgate.call("POST", "/stream", created)) as {
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const name = ingest.rtmp.streamname;
  await stage.headgate.call("PUT", "/organisation/settings", {
    update_fields: ["bitrate", "bytes_in", "bytes_out", "dropped_frames", "fps", "loss", "rtt"],
  });
  const { page, ...broadcast } = await stage.open(`/broadcast#token=${await stage.newToken(name)}`, PHONE);
  await until("the title", async () => (await broadcast.says("#target")).includes("Evening show"));
  expect(await page.textContent("#target strong")).toBe(title);
  expect(await broadcast.says("#target")).toContain(`(${name})`);
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  await broadcast.press();
  await broadcast.reaches("ready");
  await broadcast.press();
  await broadcast.reaches("live");
  expect(await broadcast.says("#status")).toContain("Evening show");
  await broadcast.press();
  await broadcast.reaches("ended");
  expect(await broadcast.faults()).toEqual([]);
  await until("publish_done", () => stage.customer.calls("publish_done").find(({ body }) => body.includes(name)));
  const calls = (["publish", "update_publish", "publish_done"] as const).flatMap((call) => stage.customer.calls(call));
  const told = JSON.stringify(calls.filter(({ body }) => body.includes(name)));
  expect(told).toContain("call=publish_done");
  for (const text of ["Evening", "%3Cb", "event-4711", "title", "external"]) expect(told).not.toContain(text);
  expect(stage.headgate.process.stderr()).not.toContain("Evening");
});

test("a long title without spaces fits a phone, and a stream without one shows its name", async () => {
  const { ingest } = (await stage.headgate.call("POST", "/stream", { title: "W".repeat(200) })) as {
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  const { page, ...broadcast } = await stage.open(
    `/broadcast#token=${await stage.newToken(ingest.rtmp.streamname)}`,
    PHONE,
  );
  await until("the title", async () => (await broadcast.says("#target")).includes("WWW"));
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  const name = await stage.headgate.newStream();
  const other = await stage.open(`/broadcast#token=${await stage.newToken(name)}`);
  await other.page.waitForLoadState("networkidle");
  expect(await other.says("#target")).toBe(`Your link leads to ${name}.`);
});

inWholeRun("without a link the name is entered, and its custom arguments reach the customer", async () => {
  const name = await stage.headgate.newStream();
  const { page, ...broadcast } = await stage.open("/broadcast");
  await broadcast.press();
  await broadcast.reaches("ready");
  await broadcast.press();
  expect(await broadcast.says("#alerts")).toContain("The stream name is missing");
  expect(await page.evaluate("document.activeElement.id")).toBe("name");
  await page.fill("#name", `${name}?passcode=s3cret&b=2`);
  await broadcast.press();
  await broadcast.reaches("live");
  expect(await broadcast.says("#status")).toBe(`You are live on ${name}.`);
  expect(stage.customer.calls("publish").at(-1)?.body).toMatch(/^passcode=s3cret&b=2&call=publish&/);
});

test("a refused broadcast shows the customer's reason, and the preview continues for another attempt", async () => {
  refuse();
  const { broadcast } = await stage.ready();
  await broadcast.press();
  await broadcast.page.waitForSelector("#alerts blockquote");
  expect(await broadcast.says("#alerts")).toBe(
    `The broadcast was refused ${REASON} Ask the person who invited you to broadcast.`,
  );
  expect(await broadcast.tracks()).toEqual(["live", "live"]);
  stage.customer.answer({ status: 200 });
  await broadcast.press();
  await broadcast.reaches("live");
  expect(await broadcast.says("#alerts")).toBe("");
});

test("going live again right after cancelling waits until the cancelled attempt has ended", async () => {
  const { name, broadcast } = await stage.ready();
  const asked = held();
  stage.customer.answer(async () => {
    await asked.promise;
    return { status: 200 };
  });
  const publishes = () => stage.customer.calls("publish").filter(({ body }) => body.includes(name)).length;
  await broadcast.press();
  await until("the customer is asked", () => publishes() === 1);
  await broadcast.press();
  await broadcast.reaches("ready");
  await broadcast.press();
  await broadcast.reaches("connecting");
  asked.release();
  await broadcast.reaches("live");
  expect(publishes()).toBe(2);
});

test("a stream stopped by its operator shows a message and turns the camera off", async () => {
  const { id, ingest } = (await stage.headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  const broadcast = await stage.open(`/broadcast#token=${await stage.newToken(ingest.rtmp.streamname)}`);
  await broadcast.press();
  await broadcast.reaches("ready");
  await broadcast.press();
  await broadcast.reaches("live");
  await stage.headgate.call("PUT", `/stream/${id}/stop`);
  await broadcast.reaches("ended");
  expect(await broadcast.says("#alerts")).toContain("This stream is locked");
  expect(await broadcast.tracks()).toEqual(["ended", "ended"]);
});

test("leaving the page while live asks for confirmation, and ends the broadcast", async () => {
  const { name, broadcast } = await stage.ready();
  const { page } = broadcast;
  await broadcast.press();
  await broadcast.reaches("live");
  const asked = page.waitForEvent("dialog").then(async (dialog) => {
    await dialog.accept();
    return dialog.type();
  });
  await page.goto("about:blank");
  expect(await asked).toBe("beforeunload");
  await until("publish_done", () => stage.customer.calls("publish_done").find(({ body }) => body.includes(name)));
});

inWholeRun("a link that was withdrawn or truncated shows a message before the camera is on", async () => {
  const streamname = await stage.headgate.newStream();
  const token = await stage.newToken(streamname);
  await stage.headgate.call("POST", "/webcaster/revoke", { streamname });
  const withdrawn = await stage.open(`/broadcast#token=${token}`);
  await withdrawn.page.waitForSelector("#alerts .notice");
  expect(await withdrawn.says("#alerts")).toContain("This link was withdrawn");
  const cutOff = await stage.open(`/broadcast#token=${token.slice(0, 40)}`);
  expect(await cutOff.says("#alerts")).toContain("This link is incomplete");
});

const MACHINES = [
  ["no permission", { answer: "deny", program: CHROMIUM }, "Camera and microphone are blocked"],
  ["no camera", { cameras: 0 }, "No camera found"],
] as const;
test.each(casesOfRun<(typeof MACHINES)[number]>(MACHINES, 2))(
  "%s is explained with what to do",
  async (_, machine, said) => {
    const other = await startPages(machine);
    try {
      const broadcast = await stage.open("/broadcast", {}, other);
      await broadcast.press();
      await broadcast.page.waitForSelector("#alerts .notice");
      expect(await broadcast.says("#alerts")).toContain(said);
    } finally {
      await other.close();
    }
  },
);

inWholeRun(
  "in every state and both colour schemes axe finds nothing serious and a phone scrolls in one direction",
  async () => {
    const { page, ...broadcast } = await stage.open("/broadcast", PHONE);
    const found: string[] = [];
    const judge = async (state: Stage | "denied") => {
      for (const viewport of [PHONE.viewport, ON_ITS_SIDE]) {
        await page.setViewportSize(viewport);
        const beyond = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        if (beyond !== 0) found.push(`${state}: ${beyond} px beyond ${viewport.width} px`);
      }
      await page.setViewportSize(PHONE.viewport);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
        const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
        for (const { id, nodes } of serious)
          found.push(`${state}, ${colorScheme}: ${id} ${nodes.map(({ html }) => html)}`);
      }
    };
    await page.evaluate(axe.source);
    await judge("off");
    await broadcast.press();
    await broadcast.reaches("ready");
    await judge("ready");
    await page.fill("#name", await stage.headgate.newStream());
    refuse();
    await broadcast.press();
    await page.waitForSelector("#alerts .notice");
    await judge("denied");
    let allow = () => {};
    const isAllowed = new Promise<void>((resolve) => (allow = resolve));
    stage.customer.answer(async () => {
      await isAllowed;
      return { status: 200 };
    });
    await broadcast.press();
    await broadcast.reaches("connecting");
    await judge("connecting");
    allow();
    await broadcast.reaches("live");
    await page.waitForSelector("#figures:not([hidden])");
    await judge("live");
    await broadcast.press();
    await broadcast.reaches("ended");
    await judge("ended");
    expect(found).toEqual([]);
    expect(await broadcast.faults()).toEqual([]);
  },
);

test("no other site can show the page in a frame", async () => {
  const site = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end(`<iframe src="${stage.headgate.http}/broadcast"></iframe>`);
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  const { page } = await stage.pages.open("about:blank");
  const refused = page.waitForEvent("requestfailed", (request) => request.url() === `${stage.headgate.http}/broadcast`);
  await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
  expect((await refused).failure()?.errorText).toBe("net::ERR_BLOCKED_BY_RESPONSE");
  await page.context().close();
  site.close();
});

test("the page is revalidated each time but sent once, its files are cached, and none comes from elsewhere", async () => {
  const page = await fetch(`${stage.headgate.http}/broadcast`);
  const text = await page.text();
  expect(page.headers.get("cache-control")).toBe("no-cache");
  expect(page.headers.get("permissions-policy")).toContain("camera=(self), microphone=(self), display-capture=(self)");
  expect(page.headers.get("referrer-policy")).toBe("no-referrer");
  const again = await fetch(`${stage.headgate.http}/broadcast`, {
    headers: { "if-none-match": page.headers.get("etag") ?? "" },
  });
  expect(again.status).toBe(304);
  for (const name of ["content-security-policy", "permissions-policy", "x-frame-options"]) {
    expect(again.headers.get(name)).toBe(page.headers.get(name));
  }
  const files = [...text.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, address = ""]) => address);
  expect(files.every((address) => address.startsWith("/broadcast/"))).toBe(true);
  for (const address of files) {
    const file = await fetch(stage.headgate.http + address);
    expect([file.status, file.headers.get("cache-control")]).toEqual([200, "public, max-age=31536000, immutable"]);
  }
  expect((await fetch(`${stage.headgate.http}/broadcast/page-000000000000.js`)).status).toBe(404);
});
