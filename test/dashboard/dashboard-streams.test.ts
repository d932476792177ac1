// The streams and one stream as people of each role use them, and their protections. Real Chromium, real
// service, ffmpeg.
import axe from "axe-core";
import { beforeEach, expect, test, vi } from "vitest";
import { until } from "../support/child.ts";
import { type DashboardPage, useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { inWholeRun } from "../support/whole-run.ts";

/** A browser, an encoder and the service share the machine with other load. */
vi.setConfig({ testTimeout: 90_000 });
const MARKUP = `"><img src=x onerror=alert(1)><b class="planted">`;
const REASON = "Your subscription is over";
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1_280, height: 860 };

const dashboard = useDashboard();
const { open } = dashboard;

beforeEach(() => dashboard.customer.answer({ status: 200 }));

interface Stream {
  readonly id: string;
  readonly state: string;
  readonly ingest: { readonly rtmp: { readonly url: string; readonly streamname: string } };
}
const newStream = async (tags: readonly string[] = []) =>
  (await dashboard.headgate.call("POST", "/stream", { tags })) as unknown as Stream;
const nameOf = ({ ingest }: Stream) => ingest.rtmp.streamname;
const isLive = async ({ id }: Stream) => (await dashboard.headgate.call("GET", `/stream/${id}`))["state"] === "live";
const rowOf = ({ page }: DashboardPage, stream: Stream) => page.getByRole("row").filter({ hasText: nameOf(stream) });

async function publish(stream: Stream, seconds = 60) {
  const encoder = broadcast(`${dashboard.headgate.rtmp}/${nameOf(stream)}`, { seconds });
  await until("live", () => isLive(stream));
  return encoder;
}

test("a user creates a stream with tags, finds it by them, and by the command palette", async () => {
  const { page, ...dash } = await open("/dashboard/streams", "user");
  await dash.press("New stream");
  await page.getByRole("dialog").getByRole("textbox", { name: "Tags" }).fill("studio-7,");
  await page.keyboard.type("evening show");
  await page.keyboard.press("Enter");
  await dash.press("Create stream");
  await page.getByRole("heading", { name: "How to broadcast" }).waitFor();
  const name = await dash.says("h1");
  expect(name).toMatch(/^\w{5}-\w{14}$/);
  expect(await dash.says(".page-head")).toContain("studio-7 evening show");

  await newStream(["studio-8"]);
  await page.goto(`${dashboard.headgate.http}/dashboard/streams`);
  await page.getByRole("button", { name: "studio-7" }).click();
  await until("the filter", async () => (await page.getByRole("row").count()) === 2);
  expect(new URL(page.url()).search).toBe("?tag=studio-7");
  await page.reload();
  await until("the filter again", async () => (await page.getByRole("row").count()) === 2);
  await page.getByPlaceholder("Name, title or tag").fill("no such thing");
  await page.getByText("No matching streams").waitFor();
  await dash.press("Show all streams");
  await until("all", async () => (await page.getByRole("row").count()) > 2);

  await dash.command("evening");
  await page.getByRole("option", { name }).click();
  await dash.shows(name);
  expect(await dash.faults()).toEqual([]);
});

test("a user gives a stream a title and an id afterwards; the palette finds it by the title and shows its name too", async () => {
  const taken = await newStream();
  await dashboard.headgate.call("PUT", `/stream/${taken.id}/external-id`, { external_id: "event-1" });
  const stream = await newStream();
  const { page, ...dash } = await open(`/dashboard/streams/${stream.id}`, "user");
  await dash.press("Add a title");
  await dash.fill("Title", "Morning run along the river, with guests");
  await dash.fill("Your own id", "event-1");
  await dash.press("Save");
  await dash.news("is already taken");
  await dash.fill("Your own id", "event-2");
  await dash.press("Save");
  await page.getByRole("button", { name: "Change the title" }).waitFor();
  expect(await dash.says(".page-head")).toContain("Morning run along the river, with guests Your id event-2");
  await dash.command("morning");
  const option = page.getByRole("option", { name: nameOf(stream) });
  await option.waitFor();
  expect((await option.innerText()).replaceAll(/\s+/g, " ")).toBe(
    `${nameOf(stream)} Morning run along the river, with guests`,
  );
  await page.setViewportSize(PHONE);
  expect((await option.boundingBox())?.height).toBeLessThan(60);
  await page.setViewportSize(DESKTOP);
  await page.keyboard.press("Escape");
  await dash.press("Change the title");
  await dash.fill("Title", "");
  await dash.press("Save");
  await page.getByRole("button", { name: "Add a title" }).waitFor();
  expect(await dash.says(".page-head")).not.toContain("Morning run");
  expect(await dash.faults()).toEqual([]);
});

test("the page of a locked stream has Unlock in plain sight, for administrators only", async () => {
  const stream = await newStream();
  await dashboard.headgate.call("PUT", `/stream/${stream.id}/lock`);
  const path = `/dashboard/streams/${stream.id}`;
  const reader = await open(path, "readonly");
  await reader.shows(nameOf(stream));
  expect(await reader.page.getByRole("button", { name: "Unlock" }).count()).toBe(0);
  const { page, ...dash } = await open(path, "administrator");
  await dash.press("Unlock");
  await dash.news("can be broadcast to again");
  await page.getByRole("button", { name: "Unlock" }).waitFor({ state: "detached" });
  expect(await dash.faults()).toEqual([]);
});

test("a stream that goes live moves to the top by itself, with its figures, and moves back when it ends", async () => {
  const stream = await newStream(["on-air"]);
  await newStream();
  const dash = await open("/dashboard/streams", "readonly");
  const { page } = dash;
  await rowOf(dash, stream).waitFor();
  const encoder = await publish(stream);
  const first = page.getByRole("row").nth(1);
  await first
    .filter({ hasText: nameOf(stream) })
    .and(page.locator(":has-text('Live')"))
    .waitFor();
  await until("its figures", async () => /H\.264 320×180.*bps.*fps/s.test(await first.innerText()));
  expect(await page.getByRole("button", { name: /^Live/ }).innerText()).toMatch(/1$/);
  encoder.kill("SIGTERM");
  await rowOf(dash, stream).filter({ hasText: "Ended" }).waitFor();
  await encoder.exit;
});

test("an administrator locks, unlocks, stops and deletes a stream", async () => {
  const stream = await newStream();
  const encoder = await publish(stream);
  const dash = await open("/dashboard/streams", "administrator");
  const { page } = dash;
  const choose = async (item: string) => {
    await rowOf(dash, stream)
      .getByRole("button", { name: /^Actions/ })
      .click();
    // Exactly: an event that is late may show the former state for a moment, and with it "Unlock" instead of "Lock".
    await page.getByRole("menuitem", { name: item, exact: true }).click();
  };
  await rowOf(dash, stream).filter({ hasText: "Live" }).waitFor();
  await choose("Stop and lock …");
  await dash.press("Stop and lock");
  await rowOf(dash, stream).filter({ hasText: "Locked" }).waitFor();
  await encoder.exit;
  await choose("Unlock");
  await rowOf(dash, stream).filter({ hasText: "Ended" }).waitFor();
  await choose("Lock");
  await rowOf(dash, stream).filter({ hasText: "Locked" }).waitFor();
  await choose("Delete …");
  const does = page.getByRole("button", { name: "Delete stream" });
  expect(await does.isDisabled()).toBe(true);
  await page.getByRole("dialog").getByRole("textbox").fill(nameOf(stream));
  await does.click();
  await until("it is gone", async () => (await rowOf(dash, stream).count()) === 0);
  expect(await dash.faults()).toEqual([]);
});

inWholeRun("addresses are copied from the menu, with the keyboard alone", async () => {
  const stream = await newStream();
  const dash = await open("/dashboard/streams", "readonly", { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = dash;
  await rowOf(dash, stream)
    .getByRole("button", { name: /^Actions/ })
    .focus();
  await page.keyboard.press("Enter");
  const items = page.getByRole("menuitem");
  await items.first().waitFor();
  expect(await items.allInnerTexts()).toEqual(["Open", "Copy stream name", "Copy RTMP address", "Copy WHIP address"]);
  for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  await dash.news("RTMP address copied");
  expect(await page.evaluate("navigator.clipboard.readText()")).toBe(`${stream.ingest.rtmp.url}/${nameOf(stream)}`);
});

inWholeRun("the reason of a denial is shown, with a link to its delivery", async () => {
  const stream = await newStream();
  dashboard.customer.answer({ status: 403, body: REASON, headers: { "content-type": "text/plain" } });
  await broadcast(`${dashboard.headgate.rtmp}/${nameOf(stream)}`, { seconds: 5 }).exit;
  const { page, ...dash } = await open(`/dashboard/streams/${stream.id}?tab=history`, "readonly");
  const row = page.getByRole("row").filter({ hasText: REASON });
  await row.waitFor();
  expect(await row.innerText()).toContain("Your webhook denied it (status 403).");
  await row.getByRole("link", { name: /^Deliveries/ }).click();
  await dash.shows("Deliveries");
  await until("its delivery", async () => (await page.locator("main").innerText()).includes(nameOf(stream)));
  expect(await page.locator("tbody tr").count()).toBe(1);
});

test.each(["user", "readonly"] as const)(
  "as %s forbidden actions are absent, and their routes answer 403",
  async (role) => {
    const stream = await newStream();
    const encoder = await publish(stream);
    const { page, ...dash } = await open(`/dashboard/streams/${stream.id}`, role);
    await page.locator("video").waitFor();
    const count = (name: string | RegExp) => page.getByRole("button", { name }).count();
    expect(await count("End broadcast")).toBe(0);
    const links = await page.getByRole("tab", { name: "Links" }).count();
    expect([await count("Add upstream"), await count("Add tags"), links]).toEqual(
      role === "user" ? [1, 1, 1] : [0, 0, 0],
    );
    await page.getByRole("button", { name: /^Actions/ }).click();
    expect((await page.getByRole("menuitem").allInnerTexts()).filter((item) => !item.startsWith("Copy"))).toEqual([]);
    const sessions = (await dashboard.headgate.call("GET", "/session")) as unknown as { client_id: number }[];
    const session = `/session/${sessions.at(-1)?.client_id}`;
    const path = `/stream/${stream.id}`;
    const forbidden: [string, string, unknown?][] = [
      ["POST", `${session}/kick`, {}],
      ["PUT", `${session}/bitrate`, { max_bitrate_kbps: 500 }],
      ...["stop", "lock", "unlock"].map((act): [string, string] => ["PUT", `${path}/${act}`]),
      ["DELETE", path],
    ];
    const usersAlone: [string, string, unknown?][] = [
      ["POST", "/stream", {}],
      ["PUT", `${path}/tag`, { tags: [] }],
      ["POST", `${path}/upstream`, { url: "rtmp://127.0.0.1/live/a" }],
      ["POST", `${session}/upstream`, { url: "rtmp://127.0.0.1/live/a" }],
      ["POST", `${path}/play-token`, {}],
      ["POST", "/webcaster", { streamname: nameOf(stream), ingesturl: stream.ingest.rtmp.url }],
    ];
    for (const [method, to, body] of [...forbidden, ...(role === "readonly" ? usersAlone : [])]) {
      expect(await dash.call(method, to, body), `${method} ${to}`).toBe(403);
    }
    encoder.kill("SIGTERM");
    await encoder.exit;
  },
);

test("ids of another organisation are unknown in every address and event stream", async () => {
  const foreign = await foreignStream();
  const { page, ...dash } = await open(`/dashboard/streams/${foreign}`, "administrator");
  await dash.shows("There is no such stream");
  expect(await dash.faults()).toEqual([]);
  for (const id of ["nonsense", "..%2F..%2Fme", encodeURIComponent(MARKUP)]) {
    await page.goto(`${dashboard.headgate.http}/dashboard/streams/${id}`);
    await dash.shows("There is no such stream");
  }
  const asked = ["", "/publish", "/upstream"].map((rest) => `/stream/${foreign}${rest}`);
  for (const path of [...asked, `/live/${foreign}.flv`, `/organisation/events?stream=${foreign}`]) {
    expect(await dash.call("GET", path), path).toBe(404);
  }
});

inWholeRun("markup in every text written by others is shown as text", async () => {
  const stream = await newStream([MARKUP]);
  await dashboard.headgate.call("POST", `/stream/${stream.id}/upstream`, {
    url: "rtmp://127.0.0.1:9/live/abcdefgh",
    label: MARKUP,
  });
  dashboard.customer.answer({ status: 403, body: MARKUP, headers: { "content-type": "text/plain" } });
  await broadcast(`${dashboard.headgate.rtmp}/${nameOf(stream)}?a=${MARKUP.replaceAll(/[ "]/g, "")}`, { seconds: 5 })
    .exit;
  const { page, ...dash } = await open("/dashboard/streams", "administrator");
  await page.getByRole("button", { name: MARKUP }).click();
  await page.locator(".chosen-tag").waitFor();
  await page.goto(`${dashboard.headgate.http}/dashboard/streams/${stream.id}?tab=history`);
  await until("the denial", async () => (await page.locator(".said").count()) > 0);
  await dash.press("Live");
  await page.getByRole("table", { name: "Upstreams" }).getByText("<img").first().waitFor();
  await dash.press("Connect");
  const customArguments = page.locator("details", { hasText: "Custom arguments" });
  await customArguments.locator("summary").click();
  await customArguments.locator("input").fill(`p=${MARKUP}`);
  await page.getByRole("tab", { name: "ffmpeg" }).click();
  expect(await page.locator("[data-program=ffmpeg]").innerText()).toContain("<img");
  expect(await page.locator(".planted, img").count()).toBe(0);
  expect(await dash.faults()).toEqual([]);
});

inWholeRun("axe finds nothing serious in either scheme, and a phone scrolls in one direction only", async () => {
  const stream = await newStream(["a-rather-long-tag-of-a-studio-somewhere-without-any-space-in-it", "b"]);
  const encoder = await publish(stream, 300);
  const { page, ...dash } = await open("/dashboard/streams", "administrator", { viewport: DESKTOP });
  await page.evaluate(axe.source);
  const found: string[] = [];
  const judge = async (what: string) => {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      for (const { id, nodes } of serious)
        found.push(`${what}, ${colorScheme}: ${id} ${nodes.map(({ html }) => html)}`);
    }
    await page.setViewportSize(PHONE);
    const beyond = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
    if (beyond !== 0) found.push(`${what}: ${beyond} px beyond ${PHONE.width} px`);
    await page.setViewportSize(DESKTOP);
  };
  await page.getByRole("row").nth(1).waitFor();
  await judge("streams");
  await page
    .getByRole("row")
    .nth(1)
    .getByRole("button", { name: /^Actions/ })
    .click();
  await judge("menu");
  await page.keyboard.press("Escape");
  await dash.press("New stream");
  await judge("new stream");
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: nameOf(stream) }).click();
  await until("the graphs", async () => (await page.locator(".uplot").count()) >= 3);
  await judge("stream, live");
  await page.getByRole("tab", { name: "Links" }).click();
  await dash.press("Create the link");
  await page.locator(".made svg.qr").waitFor();
  // The service of this test is at 127.0.0.1, which on a phone is the phone.
  await page.getByText("Opens on this machine only").waitFor();
  await judge("stream, links");
  await dash.press("Connect");
  for (const tab of ["Addresses", "OBS", "ffmpeg", "GStreamer", "Browser", "Watch it"]) {
    await page.getByRole("tab", { name: tab }).click();
    await judge(`stream, ${tab}`);
  }
  await dash.press("End broadcast");
  await judge("kick");
  expect(found).toEqual([]);
  expect(await dash.faults()).toEqual([]);
  encoder.kill("SIGTERM");
  await encoder.exit;
});

test("the operator sees the deployment and its organisations; nobody else does", async () => {
  const { page, ...dash } = await open("/dashboard/operator", "administrator", { viewport: DESKTOP });
  await dash.shows("Deployment");
  await page.getByRole("table", { name: "Organisations" }).waitFor();
  const nodes = await page.getByRole("table", { name: "Nodes" }).innerText();
  for (const said of ["this one", "Up", " %"]) expect(nodes).toContain(said);
  const text = await dash.says("main");
  for (const said of [
    "Store Healthy",
    "Webhook outbox Empty",
    "Worker 2",
    "No certificate is set",
    "Limits in force",
  ]) {
    expect(text).toContain(said);
  }
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as axe.AxeResults;
  expect(violations.filter(({ impact }) => impact === "serious" || impact === "critical")).toEqual([]);
  await page.setViewportSize(PHONE);
  expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
  expect(await dash.faults()).toEqual([]);

  const other = await open("/dashboard/operator", "user");
  await other.shows("There is no such page");
  for (const path of ["/deployment", "/deployment/organisation"]) expect(await other.call("GET", path)).toBe(403);
});

/** The id of a stream of another organisation. */
async function foreignStream(): Promise<string> {
  const { headgate } = dashboard;
  await headgate.command(["organisation", "create", "Somebody else"]);
  const made = JSON.parse(await headgate.command(["stream", "create", "--organisation", "Somebody else"]));
  return (made as { id: string }).id;
}
