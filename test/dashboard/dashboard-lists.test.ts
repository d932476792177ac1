// What the dashboard shows while other figures or another page of a list are loading, and when they cannot be loaded.
// Real Chromium, real service, ffmpeg.
import type { Page, Route } from "playwright-core";
import { expect, test } from "vitest";
import { FOLLOWED_LIMIT } from "../../ts/dashboard/shell/loaded.ts";
import { until } from "../support/child.ts";
import { useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";
import { held } from "../support/held.ts";

const dashboard = useDashboard();
const open = (path: string) => dashboard.open(path, "administrator");

/** The id of a new stream, after this number of broadcasts to it. */
async function broadcastTo(times: number): Promise<string> {
  const { headgate } = dashboard;
  const { id, ingest } = (await headgate.call("POST", "/stream")) as {
    id: string;
    ingest: { rtmp: { streamname: string } };
  };
  const ended = async () => {
    const publishes = (await headgate.call("GET", `/stream/${id}/publish`)) as unknown as { state: string }[];
    return publishes.filter(({ state }) => state === "ended").length;
  };
  for (let time = 1; time <= times; time += 1) {
    await broadcast(`${headgate.rtmp}/${ingest.rtmp.streamname}`, { seconds: 2 }).exit;
    await until("its end", async () => (await ended()) === time);
  }
  return id;
}

/** From now on the pages of this list have one row each, and only the first can be loaded. */
async function loadOnlyFirst(page: Page, list: RegExp): Promise<void> {
  await page.route(list, async (route) => {
    const url = new URL(route.request().url());
    if (url.searchParams.has("cursor")) return await route.abort();
    url.searchParams.set("quantity", "1");
    await route.continue({ url: url.href });
  });
}

/** `path`: of the page; `table`: the name of the list there; `said`: when its further page cannot be loaded. */
async function expectReportedFailure(path: string, list: RegExp, table: string, said: string): Promise<void> {
  const { page, ...dash } = await open("/dashboard/account");
  await dash.shows("Your account");
  await loadOnlyFirst(page, list);
  await page.goto(dashboard.headgate.http + path);
  const rows = page.getByRole("table", { name: table }).locator("tbody tr");
  await until("the first page", async () => (await rows.count()) === 1);
  await dash.press("Show more");
  await page.getByText(said).waitFor();
  expect(await rows.count()).toBe(1);
  await page.unroute(list);
  await dash.press("Show more");
  await until("the further page", async () => (await rows.count()) > 1);
  expect(await page.getByText(said).count()).toBe(0);
  expect(await dash.faults()).toEqual([]);
}

test("the figures of other days are not shown while the chosen ones are loading, nor when they cannot be", async () => {
  await broadcastTo(1);
  await until("bytes", async () => {
    const { total } = (await dashboard.headgate.call("GET", "/organisation/usage")) as { total: { bytes_in: number } };
    return total.bytes_in > 0;
  });
  const { page, ...dash } = await open("/dashboard/usage");
  const sums = page.locator(".sums");
  await sums.waitFor();
  await dash.press("By day");
  await dash.press("7 days");
  await until("the span", () => new URL(page.url()).searchParams.get("from") !== null);
  await page.getByRole("tab", { name: "By day", selected: true }).waitFor();
  const answer = held();
  await page.route(/\/organisation\/usage\?/, async (route) => {
    await answer.promise;
    await route.continue();
  });
  await dash.fill("To", "2020-01-01");
  await page.getByText("Adding up the usage …").waitFor();
  expect(await sums.count()).toBe(0);
  answer.release();
  await page.getByText("This could not be loaded").waitFor();
  expect(await sums.count()).toBe(0);
  expect(await dash.faults()).toEqual([]);
});

test("a further page that arrives after the filter has changed is not added to the filtered list", async () => {
  for (let streams = 0; streams < 55; streams += 1) await dashboard.headgate.newStream();
  const { page, ...dash } = await open("/dashboard/audit");
  const rows = page.locator("tbody tr");
  await until("a page", async () => (await rows.count()) === 50);
  const requested: Route[] = [];
  await page.route(/\/organisation\/audit\?.*cursor=/, (route) => void requested.push(route));
  await dash.press("Show more");
  await until("the further page is requested", () => requested.length > 0);
  const aborted = page.waitForEvent("requestfailed", (request) => request.url().includes("cursor="));
  await page.getByLabel("What", { exact: true }).selectOption("People");
  await aborted;
  await until("people alone", async () => /person|people/i.test(await dash.says("tbody tr th")));
  const found = await rows.count();
  for (const route of requested) await route.continue();
  expect(await rows.count()).toBe(found);
  expect(await page.getByText("Created a stream").count()).toBe(0);
  expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
  expect(await dash.faults()).toEqual([]);
});

test("an empty page with a next one is followed by itself, and then offers to search further", async () => {
  await dashboard.headgate.newStream();
  const { page, ...dash } = await open("/dashboard/audit");
  await page.locator("tbody tr").first().waitFor();
  let asked = 0;
  await page.route(/\/organisation\/audit\?.*action=/, (route) => {
    asked += 1;
    if (asked > FOLLOWED_LIMIT + 1) return route.continue();
    return route.fulfill({ json: [], headers: { "x-next-cursor": `${asked}` } });
  });
  await page.getByLabel("What", { exact: true }).selectOption("Streams");
  await page.getByText("Nothing found so far").waitFor();
  expect(asked).toBe(FOLLOWED_LIMIT + 1);
  await page.unroute(/\/organisation\/audit\?.*action=/);
  await page.route(/\/organisation\/audit\?.*action=/, (route) => {
    const url = new URL(route.request().url());
    url.searchParams.delete("cursor");
    return route.continue({ url: url.href });
  });
  await dash.press("Search further");
  await page.getByText("Created a stream").first().waitFor();
  expect(await page.getByText("Nothing found so far").count()).toBe(0);
});

test("a further page of a stream's history that cannot be loaded is reported, and can be loaded again", async () => {
  const id = await broadcastTo(2);
  const said = "More of the history could not be loaded";
  await expectReportedFailure(`/dashboard/streams/${id}`, /\/stream\/[^/]+\/publish(\?|$)/, "History", said);
});

test("a further page of the refusals that cannot be loaded is reported, and can be loaded again", async () => {
  const { headgate } = dashboard;
  for (const args of ["?clientid=7", "?app=x"]) {
    await broadcast(`${headgate.rtmp}/${await headgate.newStream()}${args}`, { seconds: 2 }).exit;
  }
  await until("the refusals", async () => {
    const refusals = (await headgate.call("GET", "/refusal")) as unknown as readonly unknown[];
    return refusals.length > 1;
  });
  const said = "More refusals could not be loaded";
  await expectReportedFailure("/dashboard/refusals", /\/refusal(\?|$)/, "Refusals", said);
});

test("a further page of the organisations that cannot be loaded is reported, and can be loaded again", async () => {
  await dashboard.headgate.command(["organisation", "create", "Somebody else"]);
  const said = "More organisations could not be loaded";
  await expectReportedFailure("/dashboard/operator", /\/deployment\/organisation(\?|$)/, "Organisations", said);
});
