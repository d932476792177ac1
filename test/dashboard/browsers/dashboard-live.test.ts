// A live stream on its page: broadcast by the page's own instructions, watch it within two seconds, see its
// graphs fill, and end it. Real Chromium, real service, real ffmpeg, and a second browser that broadcasts by
// WHIP.
import { afterEach, expect, test, vi } from "vitest";
import { type Pages, startPages } from "../../support/broadcast-page.ts";
import { type Child, start, until } from "../../support/child.ts";
import { type DashboardPage, useDashboard } from "../../support/dashboard.ts";
import { inWholeRun } from "../../support/whole-run.ts";

/** A browser, an encoder and the service share the machine with other load. */
vi.setConfig({ testTimeout: 120_000 });
/** The documented limit is 2 s on an idle machine; the measured figure is printed. */
const BEHIND_LIMIT_MS = 4_000;
const RATE = 25;
const BITS = 16;

const dashboard = useDashboard();
const { open } = dashboard;
const encoders: Child[] = [];

afterEach(async () => {
  for (const encoder of encoders.splice(0)) {
    encoder.kill("SIGKILL");
    await encoder.exit;
  }
});

async function newStream(): Promise<{ readonly id: string; readonly name: string }> {
  const { id, ingest } = (await dashboard.headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  return { id, name: ingest.rtmp.streamname };
}
/** Every encoder ends with its test. */
function encode(command: string, args: readonly string[]): Child {
  const child = start(command, args);
  encoders.push(child);
  return child;
}

/** The picture of the preview, as a few numbers that suffice to compare two. */
const picture = ({ page }: DashboardPage) =>
  page.evaluate(`(() => {
    const video = document.querySelector("video");
    if (!video?.videoWidth) return null;
    const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 36 });
    const context = canvas.getContext("2d");
    context.drawImage(video, 0, 0, 64, 36);
    return context.getImageData(0, 0, 64, 36).data.join();
  })()`) as Promise<string | null>;

async function moves(dash: DashboardPage): Promise<void> {
  const first = await until("a picture", () => picture(dash), 40_000);
  await until("another picture", async () => (await picture(dash)) !== first, 20_000);
}
const graphsWith = (dash: DashboardPage) =>
  dash.page.locator(".graph:has(.plot)").evaluateAll((all) => all.map((one) => one.getAttribute("data-graph")));

const contains = (all: readonly (string | null)[], some: readonly string[]) => some.every((name) => all.includes(name));

test("with the page's own ffmpeg command the preview plays, graphs fill, and a kick with a reason ends the publish", async () => {
  const { id, name } = await newStream();
  const dash = await open(`/dashboard/streams/${id}`, "administrator");
  const { page } = dash;
  await page.getByRole("tab", { name: "ffmpeg" }).click();
  const command = await page.locator("[data-program=ffmpeg] pre code").first().innerText();
  const encoder = encode("sh", ["-c", `exec ${command.replace(/^ffmpeg/, "ffmpeg -nostdin -loglevel warning")}`]);
  await moves(dash);
  expect(await dash.says(".page-head")).toContain("Live");
  await until("the facts", async () => /H\.264, 1280×720.*AAC/.test(await dash.says(".now")), 30_000);
  await until("four graphs", async () => (await graphsWith(dash)).length === 4, 30_000);
  expect(await graphsWith(dash)).toEqual(["bitrate_kbps", "fps", "gop_ms", "rtt_ms"]);
  await page.getByRole("group", { name: "Span" }).getByRole("button", { name: "1 minute" }).click();
  const label = () => page.locator("[data-graph=bitrate_kbps] .plot").getAttribute("aria-label");
  await until("a bitrate", async () => /now \d+(\.\d)? [kM]bps$/.test((await label()) ?? ""));
  await until("time and value at the pointer, in every graph of that time", async () => {
    const graph = page.locator("[data-graph=bitrate_kbps] .u-over");
    const { width } = (await graph.boundingBox()) ?? { width: 0 };
    await graph.hover({ position: { x: width - 3, y: 20 } });
    const said = await page.locator(".at-pointer:visible").allInnerTexts();
    return said.length === 4 && /^\d+:\d\d:\d\d.* · \d+(\.\d)? [kM]bps$/.test(said[0] ?? "");
  });
  await until("a verdict", async () => (await dash.says(".findings")) !== "");

  await page.getByRole("button", { name: "Pause the preview" }).click();
  await until("no picture is loaded", async () => /Paused/.test(await dash.says(".preview")));
  await page.getByRole("button", { name: "Play the preview" }).click();
  await until("it continues to play", async () => (await page.locator(".preview-words").count()) === 0, 40_000);

  await dash.press("End broadcast");
  await page.getByLabel("Reason").fill("Off air");
  await page.getByRole("dialog").getByRole("button", { name: "End broadcast" }).click();
  await until("the encoder ended", () => encoder.exit.then(() => true), 30_000);
  expect(encoder.stderr()).toMatch(/Off air|Broken pipe|Connection reset|Error/);
  await page.getByText("Not live").waitFor();
  await dash.press("History");
  const row = page.getByRole("table", { name: "History" }).locator("tbody tr").first();
  await until("its end", async () => /Ended.*It was ended by a person: Off air/s.test(await row.innerText()));
  await row.getByRole("button", { name: "Timeline" }).click();
  const moments = page.getByRole("dialog", { name: "What happened" }).getByRole("listitem");
  await until("its first video", async () =>
    /The first video arrived after/.test((await moments.allInnerTexts()).join()),
  );
  expect(await moments.first().innerText()).toMatch(/\+0\.000 s\s+A broadcaster at .* asked to publish by RTMP\./);
  expect((await moments.allInnerTexts()).join()).toMatch(/Ended after .*: it was ended by a person/);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  expect(await dash.faults()).toEqual([]);
  await dashboard.customer.received("publish_done");
  expect(dashboard.customer.calls("publish_done").at(-1)?.body).toContain(name);
});

inWholeRun("the preview is at most two seconds behind, by a clock in the picture", async () => {
  const { id, name } = await newStream();
  const dash = await open(`/dashboard/streams/${id}`, "readonly");
  const epoch = Date.now();
  // Each column of 20 pixels is one bit of the number of frames since `epoch`, by the encoder's wall clock.
  const clock = [
    `setpts='(RTCTIME-${epoch * 1_000})/(TB*1000000)'`,
    `geq=lum='if(mod(floor(floor(T*${RATE})/pow(2,floor(X/20))),2),235,16)':cb=128:cr=128`,
    `setpts=N/${RATE}/TB`,
  ].join(",");
  const source = ["-re", "-f", "lavfi", "-i", `color=size=320x180:rate=${RATE}`, "-f", "lavfi", "-i", "sine"];
  const coded = ["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "50", "-pix_fmt", "yuv420p"];
  const target = ["-c:a", "aac", "-f", "flv", `${dashboard.headgate.rtmp}/${name}`];
  encode("ffmpeg", ["-nostdin", "-loglevel", "warning", ...source, "-vf", clock, ...coded, ...target]);
  const behindMs = () =>
    dash.page.evaluate(`(() => {
      const video = document.querySelector("video");
      if (!video?.videoWidth) return null;
      const canvas = Object.assign(document.createElement("canvas"), { width: 320, height: 180 });
      const context = canvas.getContext("2d");
      context.drawImage(video, 0, 0, 320, 180);
      const now = Date.now();
      let frames = 0;
      for (let bit = 0; bit < ${BITS}; bit += 1) {
        if (context.getImageData(20 * bit + 10, 90, 1, 1).data[1] > 127) frames += 2 ** bit;
      }
      return frames === 0 ? null : now - ${epoch} - frames * ${1_000 / RATE};
    })()`) as Promise<number | null>;
  await until("a picture", async () => (await behindMs()) !== null, 40_000);
  const measured: number[] = [];
  const look = async () => {
    const now = await behindMs();
    return now !== null && measured.push(now) === 40;
  };
  await until("ten seconds of it", look, 40_000, 250);
  const sorted = measured.sort((one, other) => one - other);
  const [middle = 0, most = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  console.log(
    `preview: ${(middle / 1_000).toFixed(2)} s behind the encoder's clock, ${(most / 1_000).toFixed(2)} s at most`,
  );
  expect(middle).toBeGreaterThan(0);
  expect(middle).toBeLessThan(BEHIND_LIMIT_MS);
});

inWholeRun(
  "by a link made on the page a second browser broadcasts; its network figures are shown, and it is limited",
  async () => {
    const { id } = await newStream();
    const dash = await open(`/dashboard/streams/${id}?tab=links`, "administrator");
    const { page } = dash;
    await page.locator("#tokens").getByRole("textbox").fill("passcode=s3cret");
    await dash.press("Create the link");
    const link = await page.getByRole("group", { name: "Broadcast link" }).locator("code").innerText();
    let pages: Pages | null = null;
    try {
      pages = await startPages();
      const other = await pages.open(link);
      await other.press();
      await other.reaches("ready");
      await other.press();
      await other.reaches("live");
      expect(dashboard.customer.calls("publish").at(-1)?.body).toMatch(/^passcode=s3cret&/);
      await dash.press("Live");
      await moves(dash);
      await until("WHIP", async () => /WHIP \(browser\)/.test(await dash.says(".now")));
      const known = ["bitrate_kbps", "fps", "gop_ms", "loss_percent", "skew_ms"];
      // The round trip requires that the sender requests reports; this one does not.
      await until("its graphs", async () => contains(await graphsWith(dash), known), 40_000);
      const field = page.getByLabel("At most, kbps");
      await field.fill("600");
      await dash.press("Set the limit");
      expect(await dash.news("stays below")).toBe("The sender stays below 600 kbps");
      await page.getByRole("button", { name: /^Actions/ }).click();
      await page.getByRole("menuitem", { name: "Stop and lock …" }).click();
      await dash.press("Stop and lock");
      await other.reaches("ended");
      await page.getByText("The stream is locked: nobody can broadcast to it until it is unlocked.").waitFor();
    } finally {
      await pages?.close();
    }
    expect(await dash.faults()).toEqual([]);
  },
);

test("only the organisation's people see a preview, and it ends with their session", async () => {
  const { id, name } = await newStream();
  const source = ["-re", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25", "-t", "60"];
  const coded = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-pix_fmt", "yuv420p"];
  encode("ffmpeg", [
    "-nostdin",
    "-loglevel",
    "error",
    ...source,
    ...coded,
    "-f",
    "flv",
    `${dashboard.headgate.rtmp}/${name}`,
  ]);
  const dash = await open(`/dashboard/streams/${id}`, "readonly");
  await moves(dash);
  expect((await fetch(`${dashboard.headgate.http}/live/${id}.flv`)).status).toBe(403);
  await dash.page.context().request.post(`${dashboard.headgate.http}/logout`);
  await dash.page.getByRole("heading", { name: "Sign in to Headgate" }).waitFor({ timeout: 60_000 });
});
