// Metrics are documented correctly: every metric states its meaning and unit, the documentation lists each,
// and dashboard, alerts and runbook name no other. promtool tests the alerts.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { text as grafanaText } from "../../tools/grafana.mjs";
import { run } from "../support/child.ts";
import { type Cluster, startCluster } from "../support/cluster.ts";
import { type Customer, startCustomer } from "../support/customer.ts";
import { isWholeRun } from "../support/whole-run.ts";

const FOLDER = "docs/monitoring";
const read = (path: string) => readFileSync(path, "utf8");
/** Gauges that count present objects have no unit; neither have those whose labels carry the information. */
const COUNTS = [
  "headgate_full",
  "headgate_publishes",
  "headgate_publish_troubles",
  "headgate_players",
  "headgate_previews",
  "headgate_pulls",
  "headgate_upstreams",
  "headgate_nodes",
  "headgate_outbox_events",
  "headgate_webhook_in_flight",
  "headgate_webhook_waiting",
  "headgate_webhook_breaker_open",
  "headgate_copy_outbox_events",
  "headgate_copy_breaker_open",
  "headgate_store_up",
];

interface Metric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
}

/** Names of metrics in a text; for a histogram its own name, without the suffixes of Prometheus. */
const namesIn = (text: string): Set<string> =>
  new Set((text.match(/\bheadgate_[a-z0-9_]+\b/g) ?? []).map((name) => name.replace(/_(bucket|sum|count)$/, "")));

let customer: Customer;
let cluster: Cluster;
let metrics: readonly Metric[];
/** As scraped. */
let scrape: string;

/** A node among others has every metric that exists. */
beforeAll(async () => {
  customer = await startCustomer();
  cluster = await startCluster({ nodes: 1, customer });
  scrape = await (await fetch(`${cluster.nodes[0]?.metrics}/metrics`)).text();
  const text = scrape;
  const helps = new Map([...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = "", help = ""]) => [name, help]));
  metrics = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => ({
    name,
    type,
    help: helps.get(name) ?? "",
  }));
}, 180_000);
afterAll(async () => {
  await cluster?.close();
  await customer?.close();
});

const ours = () => metrics.filter(({ name }) => name.startsWith("headgate_"));

test("every metric has a help text", () => {
  expect(metrics.length).toBeGreaterThan(40);
  for (const { name, help } of metrics) expect([name, help.length >= 10]).toEqual([name, true]);
});

test("every name ends with its unit: counters with _total, measured values with _seconds, _bytes or _ratio", () => {
  for (const { name, type } of ours()) {
    if (type === "counter") expect(name).toMatch(/_total$/);
    else if (type === "histogram") expect(name).toMatch(/_(seconds|bytes)$/);
    else if (!COUNTS.includes(name)) expect(name).toMatch(/_(seconds|bytes|ratio|info)$/);
    expect([name, type]).not.toEqual([expect.stringMatching(/_total$/), "gauge"]);
  }
});

test("the documentation lists every metric, and no others", () => {
  const listed = namesIn(/## Metrics\n[\s\S]*?\n## /.exec(read("docs/operating.md"))?.[0] ?? "");
  expect([...listed].sort()).toEqual([...new Set(ours().map(({ name }) => name))].sort());
});

describe("only existing metrics are named in", () => {
  const files = ["docs/runbook.md", "docs/webhook.md", "docs/cluster.md", "docs/management.md"];
  test.each([...files, `${FOLDER}/alerts.yaml`, `${FOLDER}/alerts.test.yaml`, `${FOLDER}/grafana.json`])(
    "%s",
    (path) => {
      const known = new Set(metrics.map(({ name }) => name));
      const named = [...namesIn(read(path)), ...(read(path).match(/\b(nodejs|process)_[a-z0-9_]+\b/g) ?? [])];
      expect(named.filter((name) => !known.has(name))).toEqual([]);
    },
  );
});

test("every metric of ours is on the dashboard", () => {
  const shown = namesIn(read(`${FOLDER}/grafana.json`));
  const missing = ours().filter(({ name }) => !shown.has(name));
  expect(missing.map(({ name }) => name)).toEqual([]);
});

test("promtool refuses none of a node's metrics", async () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-metrics-"));
  try {
    const file = join(folder, "scrape");
    writeFileSync(file, scrape);
    const check = await run("sh", ["-c", 'promtool check metrics < "$1"', "sh", file]);
    expect(check.stdout() + check.stderr()).toBe("");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the dashboard equals the output of its script, and its data source is a variable", () => {
  expect(read(`${FOLDER}/grafana.json`)).toBe(grafanaText());
  const dashboard = JSON.parse(grafanaText()) as { templating: { list: { name: string; type: string }[] } };
  expect(dashboard.templating.list[0]).toMatchObject({ name: "datasource", type: "datasource" });
  expect(grafanaText().match(/"uid": "(?!\$datasource|headgate")/g)).toBeNull();
});

describe("the alerts", () => {
  const alerts = read(`${FOLDER}/alerts.yaml`);
  const names = [...alerts.matchAll(/alert: (\w+)/g)].map(([, name]) => name);

  test("are valid, and fire when they should", async () => {
    await run("promtool", ["check", "rules", join(FOLDER, "alerts.yaml")]);
    // It evaluates days of them.
    if (isWholeRun) await run("promtool", ["test", "rules", join(FOLDER, "alerts.test.yaml")]);
    const tested = read(`${FOLDER}/alerts.test.yaml`);
    for (const name of names) expect(tested).toContain(`alertname="${name}"`);
  });

  test("each have a severity, a summary, and a section of the runbook", () => {
    const headings = [...read("docs/runbook.md").matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));
    const sections = [...alerts.matchAll(/runbook: docs\/runbook\.md#(\S+)/g)].map(([, anchor = ""]) => anchor);
    expect(sections).toHaveLength(names.length);
    expect([alerts.match(/severity: (page|ticket) /g)?.length, alerts.match(/summary: "/g)?.length]).toEqual([
      names.length,
      names.length,
    ]);
    expect(headings).toEqual(expect.arrayContaining(sections));
    // And every section is linked from an alert.
    expect(headings.filter((heading) => !sections.includes(heading))).toEqual([]);
  });
});

test("links in runbook and operating lead to existing sections", () => {
  for (const file of ["runbook.md", "operating.md"]) {
    for (const [, target = "", anchor = ""] of read(`docs/${file}`).matchAll(/\]\(([\w.-]*)#([\w-]+)\)/g)) {
      const headings = [...read(`docs/${target || file}`).matchAll(/^#+ (.+)$/gm)].map(([, of = ""]) => anchorOf(of));
      expect([file, target, headings.includes(anchor) ? anchor : `no ${anchor}`]).toEqual([file, target, anchor]);
    }
  }
});

/** The anchor that Markdown viewers make of a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");
}
