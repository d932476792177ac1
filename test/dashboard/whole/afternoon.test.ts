// An afternoon with refusals, faults and a node that drains (tools/afternoon): every question about it is answered by the
// dashboard alone, from the overview on, with four clicks at most. docs/afternoon.md lists the same clicks.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { haveAnAfternoon } from "../../../tools/afternoon/events.mjs";
import { QUESTIONS } from "../../../tools/afternoon/questions.mjs";
import { until } from "../../support/child.ts";
import { type DashboardPage, PASSWORD, useDashboard } from "../../support/dashboard.ts";
import { freePort } from "../../support/free-port.ts";

const CLICKS_LIMIT = 4;
/** Of the halls without a story, those that broadcast; `node tools/afternoon.mjs` has more. */
const LIVE = 2;

const dashboard = useDashboard({ HEADGATE_DRAIN_S: "600" });
let afternoon: { stop(): void };
beforeAll(async () => {
  const { headgate, customer } = dashboard;
  const { http, rtmp, call, process } = headgate;
  const service = { http, rtmp, call, drain: () => process.kill("SIGTERM") };
  afternoon = await haveAnAfternoon({
    service,
    customer,
    password: PASSWORD,
    upstreamPort: await freePort(),
    live: LIVE,
  });
}, 120_000);
afterAll(() => afternoon?.stop());

/** The link, button or tab with these words, or the row of the list of streams; of equal ones the first. */
async function click({ page }: DashboardPage, words: string): Promise<void> {
  const named = { name: new RegExp(`^${words}\\b`) };
  const row = page.getByRole("row").filter({ has: page.locator(".stream-title").getByText(words, { exact: true }) });
  const found = page
    .getByRole("link", named)
    .or(page.getByRole("button", named))
    .or(page.getByRole("tab", named))
    .or(row.getByRole("link"))
    .filter({ visible: true });
  await found.first().click();
}

test.each(QUESTIONS)("$question", async ({ clicks, answer }) => {
  expect(clicks.length).toBeLessThanOrEqual(CLICKS_LIMIT);
  // A tall window in place of scrolling.
  const dash = await dashboard.open("/dashboard/overview", "administrator", {
    viewport: { width: 1_280, height: 2_400 },
  });
  await dash.shows("Overview");
  for (const words of clicks) await click(dash, words);
  for (const words of answer) {
    await until(`the page says ${words}`, async () => {
      const said = await dash.says("main");
      return typeof words === "string" ? said.includes(words) : words.test(said);
    });
  }
  expect(await dash.faults()).toEqual([]);
});

test("the guide lists every question with its clicks", () => {
  const rows = readFileSync("docs/afternoon.md", "utf8");
  for (const { question, clicks } of QUESTIONS) {
    expect(rows).toContain(`| ${question} | ${clicks.length === 0 ? "none" : clicks.join(" → ")} |`);
  }
});
