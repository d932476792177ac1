// The page Refusals, and refusals in the history of a stream: why a stream could not go live at some time, what to do
// about it, and links that show the same to somebody else. Real Chromium, real service, ffmpeg.
import { beforeAll, describe, expect, test } from "vitest";
import { start, until } from "../support/child.ts";
import { type DashboardPage, useDashboard } from "../support/dashboard.ts";
import { broadcast } from "../support/ffmpeg.ts";

const REASON = "Your subscription ended on 31 May";
const UNKNOWN = "Ab1Cd-guessedByNobody";

interface Stream {
  readonly id: string;
  readonly name: string;
}
interface Refusal {
  readonly reason: string;
  readonly stream: { readonly id: string } | null;
}

const dashboard = useDashboard();
let locked: Stream;
let reserved: Stream;

async function newStream(): Promise<Stream> {
  const { id, ingest } = (await dashboard.headgate.call("POST", "/stream")) as {
    readonly id: string;
    readonly ingest: { readonly rtmp: { readonly streamname: string } };
  };
  return { id, name: ingest.rtmp.streamname };
}
const attempt = (name: string) => broadcast(`${dashboard.headgate.rtmp}/${name}`, { seconds: 5, size: "160x90" }).exit;
async function refusals(query = ""): Promise<readonly Refusal[]> {
  return (await dashboard.headgate.call("GET", `/refusal${query}`)) as unknown as readonly Refusal[];
}
const reasonsKnown = async (...reasons: readonly string[]) => {
  const known = (await refusals()).map(({ reason }) => reason);
  return reasons.every((reason) => known.includes(reason));
};

beforeAll(async () => {
  const { headgate, customer } = dashboard;
  [locked, reserved] = [await newStream(), await newStream()];
  await headgate.call("PUT", `/stream/${locked.id}/lock`);
  await attempt(locked.name);
  await attempt(`${reserved.name}?clientid=7`);
  await attempt(UNKNOWN);
  customer.answer({ status: 403, body: REASON, headers: { "content-type": "text/plain" } });
  await attempt(reserved.name);
  customer.answer({ status: 200 });
  await start("ffprobe", ["-v", "error", `${headgate.rtmp}/${reserved.name}`], { timeout: 20_000 }).exit;
  await until("the refusals", () =>
    reasonsKnown("locked_stream", "reserved_field", "unknown_stream", "rejected_by_customer", "not_live"),
  );
}, 120_000);

const rowsOf = ({ page }: Pick<DashboardPage, "page">) =>
  page.getByRole("table", { name: "Refusals" }).locator("tbody tr");
const queryOf = ({ page }: Pick<DashboardPage, "page">) => Object.fromEntries(new URL(page.url()).searchParams);

describe("the page Refusals", () => {
  test("says of each what happened, to which stream, what to do, and what the encoder was told", async () => {
    const dash = await dashboard.open("/dashboard/refusals", "administrator");
    await rowsOf(dash).first().waitFor();
    const rowWith = async (words: string) => {
      const row = rowsOf(dash).filter({ hasText: words });
      expect(await row.count(), words).toBe(1);
      return await row.innerText();
    };
    const lockedRow = await rowWith("The stream is locked.");
    for (const words of [locked.name, "Publish", "RTMP", "Unlock it", "Stream is locked", "127.0.0.1", "just now"])
      expect(lockedRow).toContain(words);
    expect(await rowWith("The custom arguments contain a reserved field.")).toContain(reserved.name);
    expect(await rowWith("Your webhook denied it (status 403).")).toContain(REASON);
    expect(await rowWith("Nothing of this name was live.")).toContain("Play");
    const unknown = await rowWith("No stream has this name.");
    expect(unknown).toContain("Unknown name");
    expect(unknown).toContain(UNKNOWN);
    const time = rowsOf(dash).first().locator("time").first();
    const at = Date.parse((await time.getAttribute("datetime")) ?? "");
    const words = await dash.page.evaluate(
      `new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }).format(${at})`,
    );
    expect(await time.innerText()).toContain(String(words));
    expect(await dash.faults()).toEqual([]);
  });

  test("shows a name that no stream has to the operator only", async () => {
    const dash = await dashboard.open("/dashboard/refusals", "readonly");
    await rowsOf(dash).first().waitFor();
    expect(await rowsOf(dash).filter({ hasText: "The stream is locked." }).count()).toBe(1);
    expect(await dash.page.locator("main").innerText()).not.toContain(UNKNOWN);
  });

  test("is filtered by reason, kind, stream and time, and the address shows the same to somebody else", async () => {
    const dash = await dashboard.open("/dashboard/refusals", "administrator");
    const { page } = dash;
    await rowsOf(dash).first().waitFor();
    await page.getByLabel("What", { exact: true }).selectOption("Plays");
    await until("plays", async () => (await rowsOf(dash).count()) === 1);
    expect(queryOf(dash)).toEqual({ request: "play" });
    await dash.press("Clear the filter");
    await page.getByLabel("Reason", { exact: true }).selectOption("Reserved argument");
    await until("the reason", async () => (await rowsOf(dash).count()) === 1);
    await dash.fill("Stream name", reserved.name);
    await page.keyboard.press("Enter");
    await until("the stream", () => queryOf(dash).stream === reserved.id);
    await dash.press("Last hour");
    await until("the time", () => queryOf(dash).from !== undefined);
    await until("the row", async () => (await rowsOf(dash).count()) === 1);
    expect(queryOf(dash)).toEqual({ reason: "reserved_field", stream: reserved.id, from: queryOf(dash).from });
    const { pathname, search } = new URL(page.url());
    const other = await dashboard.open(pathname + search, "readonly");
    await rowsOf(other).first().waitFor();
    expect(await rowsOf(other).count()).toBe(1);
    expect(await other.page.getByLabel("Reason", { exact: true }).inputValue()).toBe("reserved_field");
    expect(await other.page.getByLabel("Stream name").inputValue()).toBe(reserved.name);
    expect(await other.page.getByLabel("From", { exact: true }).inputValue()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/);
    await rowsOf(other).getByRole("link", { name: reserved.name }).click();
    await other.shows(reserved.name);
    expect([...(await dash.faults()), ...(await other.faults())]).toEqual([]);
  });

  test("takes a time from the keyboard, says when none is left, and ignores what it cannot read", async () => {
    const dash = await dashboard.open("/dashboard/refusals?from=yesterday&reason=nothing&request=both", "user");
    await rowsOf(dash).first().waitFor();
    expect(await rowsOf(dash).count()).toBeGreaterThan(2);
    await dash.fill("To", "2020-01-31T14:05");
    await dash.page.getByText("No refusals match the filter").waitFor();
    const at = await dash.page.evaluate(`new Date("2020-01-31T14:05").toISOString().slice(0, 16) + "Z"`);
    expect(queryOf(dash).to).toBe(at);
    await dash.press("Last hour");
    await dash.page.getByText("No refusals match the filter").waitFor({ state: "detached" });
    expect(queryOf(dash).to).toBeUndefined();
    await dash.fill("To", "2020-01-31T14:05");
    await dash.page.getByText("Must be later than “From”.").waitFor();
    await dash.fill("Stream name", "no-such-stream");
    await dash.page.keyboard.press("Tab");
    await dash.page.getByText("No stream is called no-such-stream.").waitFor();
    expect(await dash.faults()).toEqual([]);
  });

  test("is reached from the navigation, and from the palette by what people call it", async () => {
    const dash = await dashboard.open("/dashboard/streams", "readonly");
    await dash.shows("Streams");
    await dash.page.getByRole("navigation").getByRole("link", { name: "Refusals" }).click();
    await dash.shows("Refusals");
    await dash.press("Streams");
    await dash.shows("Streams");
    await dash.command("why denied");
    await dash.page.keyboard.press("Enter");
    await dash.shows("Refusals");
    expect(await dash.faults()).toEqual([]);
  });

  test("says when it cannot be loaded, and loads it again", async () => {
    const dash = await dashboard.open("/dashboard/account", "readonly");
    await dash.page.route(/\/refusal(\?|$)/, (route) => route.abort());
    await dash.press("Refusals");
    await dash.page.getByText("This could not be loaded").waitFor();
    await dash.page.unroute(/\/refusal(\?|$)/);
    await dash.press("Try again");
    await rowsOf(dash).first().waitFor();
  });
});

describe("the history of a stream", () => {
  const historyOf = ({ page }: Pick<DashboardPage, "page">) =>
    page.getByRole("table", { name: "History" }).locator("tbody tr");

  test("has what was refused between its broadcasts, in the order of time, once each", async () => {
    const stream = await newStream();
    await attempt(`${stream.name}?clientid=7`);
    await broadcast(`${dashboard.headgate.rtmp}/${stream.name}`, { seconds: 2 }).exit;
    dashboard.customer.answer({ status: 403, body: REASON, headers: { "content-type": "text/plain" } });
    await attempt(stream.name);
    dashboard.customer.answer({ status: 200 });
    await dashboard.headgate.call("PUT", `/stream/${stream.id}/lock`);
    await attempt(stream.name);
    await until("the refusals", async () => (await refusals(`?stream=${stream.id}`)).length === 3);
    const dash = await dashboard.open(`/dashboard/streams/${stream.id}`, "readonly");
    await historyOf(dash).first().waitFor();
    const rows = await historyOf(dash).allInnerTexts();
    const order = ["The stream is locked.", REASON, "The broadcaster stopped.", "a reserved field"];
    expect(rows.map((row) => order.findIndex((words) => row.includes(words)))).toEqual([0, 1, 2, 3]);
    await dash.press("Yesterday");
    await dash.page.getByText("Nothing happened at this time").waitFor();
    await dash.press("Today");
    await until("today's", async () => (await historyOf(dash).count()) === 4);
    await dash.press("Refusals");
    await dash.shows("Refusals");
    expect(await dash.faults()).toEqual([]);
  });

  test("names the person who ended a broadcast, and the key", async () => {
    const stream = await newStream();
    const dash = await dashboard.open(`/dashboard/streams/${stream.id}`, "administrator");
    const end = async (kick: (path: string) => Promise<unknown>) => {
      const encoder = broadcast(`${dashboard.headgate.rtmp}/${stream.name}`, { seconds: 30, size: "160x90" });
      await dash.page.getByRole("button", { name: "End broadcast" }).waitFor();
      const sessions = (await dashboard.headgate.call("GET", "/session")) as unknown as { client_id: number }[];
      await kick(`/session/${sessions.at(-1)?.client_id}/kick`);
      await encoder.exit;
    };
    await end((path) => dashboard.headgate.call("POST", path, { reason: "Wrong room" }));
    await historyOf(dash).filter({ hasText: "By the key hg_" }).waitFor();
    await end((path) => dash.call("POST", path, { reason: "Off air" }));
    const row = historyOf(dash).filter({ hasText: "It was ended by a person: Off air" });
    await row.waitFor();
    expect(await row.innerText()).toContain("By admin");
  });

  test("links to the refusals of this stream and time", async () => {
    const dash = await dashboard.open(`/dashboard/streams/${locked.id}`, "readonly");
    await historyOf(dash).first().waitFor();
    await dash.press("Last 24 hours");
    await until("the time", () => queryOf(dash).from !== undefined);
    await dash.page.getByRole("region", { name: "History" }).getByRole("link", { name: "Refusals" }).click();
    await dash.shows("Refusals");
    expect(queryOf(dash)).toMatchObject({ stream: locked.id, from: expect.any(String) });
    await rowsOf(dash).first().waitFor();
    expect(await dash.page.getByLabel("Stream name").inputValue()).toBe(locked.name);
  });

  test("keeps its order when both lists go on, however many pages each has", async () => {
    const dash = await dashboard.open("/dashboard/account", "readonly");
    await dash.page.route(/\/stream\/[^/]+\/(publish|refusal)(\?|$)/, async (route) => {
      const url = new URL(route.request().url());
      url.searchParams.set("quantity", "1");
      await route.continue({ url: url.href });
    });
    await dash.page.goto(`${dashboard.headgate.http}/dashboard/streams/${reserved.id}`);
    const times = () =>
      historyOf(dash)
        .locator("th > time")
        .evaluateAll((all) => all.map((each) => each.getAttribute("datetime") ?? ""));
    await historyOf(dash).first().waitFor();
    for (let known = await times(); known.length < 3; ) {
      await dash.press("Show more");
      await until("more", async () => (await times()).length > known.length);
      known = await times();
      expect(known).toEqual(known.toSorted().reverse());
    }
    expect((await times()).length).toBe(3);
  });
});
