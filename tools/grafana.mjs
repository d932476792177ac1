// `node tools/grafana.mjs` writes docs/monitoring/grafana.json, the operator's dashboard: rows of panels for the
// metrics of docs/operating.md. The data source is a variable that is set at the import.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../scripts/build.mjs";

/** Grafana's grid has 24 columns; a row's heading is 1 high. */
const COLUMNS = 24;
const PANEL = { width: 8, height: 7 };
const DATA_SOURCE = { type: "prometheus", uid: "$datasource" };
/** Nodes chosen at the top of the dashboard, by their `instance`. */
const NODE = 'instance=~"$node"';

/** Rows, each with its panels: title, unit as Grafana names it, and queries as [expression, legend]. `$of` stands
 *  for the chosen nodes, `$range` for Grafana's rate interval. */
const ROWS = [
  [
    "Publishes",
    [
      ["Running publishes", "short", [["sum by (protocol) (headgate_publishes{$of})", "{{protocol}}"]]],
      [
        "Started and denied",
        "reqps",
        [
          ["sum by (protocol) (rate(headgate_publish_started_total{$of}[$range]))", "started, {{protocol}}"],
          ["sum by (cause) (rate(headgate_publish_denied_total{$of}[$range]))", "denied: {{cause}}"],
          ['sum by (cause) (rate(headgate_refused_total{$of,request="play"}[$range]))', "player refused: {{cause}}"],
        ],
      ],
      [
        "Ended, by reason",
        "reqps",
        [["sum by (reason) (rate(headgate_publish_ended_total{$of}[$range]))", "{{reason}}"]],
      ],
      ["Media", "bps", [["8 * sum by (direction) (rate(headgate_media_bytes_total{$of}[$range]))", "{{direction}}"]]],
      [
        "Who watches",
        "short",
        [
          ["sum(headgate_players{$of})", "players"],
          ["sum(headgate_previews{$of})", "previews"],
          ["sum(headgate_pulls{$of})", "pulls from other nodes"],
        ],
      ],
      [
        "Problems of running publishes",
        "short",
        [["sum by (trouble) (headgate_publish_troubles{$of})", "{{trouble}}"]],
      ],
      ["Upstreams", "short", [["sum by (state) (headgate_upstreams{$of})", "{{state}}"]]],
      [
        "Lost upstreams, failed transcoders, backups on air",
        "reqps",
        [
          ["sum(rate(headgate_upstream_lost_total{$of}[$range]))", "upstreams lost"],
          ["sum(rate(headgate_transcoder_failed_total{$of}[$range]))", "transcoders failed"],
          ["sum by (cause) (rate(headgate_takeovers_total{$of}[$range]))", "backup took over: {{cause}}"],
          ["sum by (kind) (rate(headgate_irregularities_total{$of}[$range]))", "irregular input: {{kind}}"],
        ],
      ],
    ],
  ],
  [
    "Webhooks",
    [
      [
        "Calls, by outcome",
        "reqps",
        [["sum by (call, outcome) (rate(headgate_webhook_calls_total{$of}[$range]))", "{{call}} {{outcome}}"]],
      ],
      [
        "Time to an answer to publish",
        "s",
        [
          [
            'histogram_quantile(0.5, sum by (le) (rate(headgate_webhook_seconds_bucket{$of,call="publish"}[$range])))',
            "half",
          ],
          [
            'histogram_quantile(0.99, sum by (le) (rate(headgate_webhook_seconds_bucket{$of,call="publish"}[$range])))',
            "99 of 100",
          ],
        ],
      ],
      ["Slow answers", "reqps", [["sum by (call) (rate(headgate_webhook_slow_total{$of}[$range]))", "{{call}}"]]],
      [
        "Calls in flight",
        "short",
        [
          ["sum(headgate_webhook_in_flight{$of})", "in flight"],
          ["sum(headgate_webhook_waiting{$of})", "waiting"],
          [
            "count(max by (organisation) (headgate_webhook_breaker_open{$of})) or vector(0)",
            "webhooks that only time out",
          ],
        ],
      ],
      [
        "Ends that wait for their customers",
        "short",
        [
          ["max(headgate_outbox_events)", "waiting"],
          ["sum(increase(headgate_outbox_given_up_total[1h]))", "given up in an hour"],
        ],
      ],
      [
        "The oldest of them",
        "s",
        [
          ["max(headgate_outbox_oldest_seconds)", "waits"],
          ["max(headgate_copy_outbox_oldest_seconds)", "copy or alert waits"],
        ],
      ],
      [
        "Copies for second webhooks",
        "short",
        [
          ["sum by (outcome) (increase(headgate_copy_calls_total{$of}[$range]))", "{{outcome}}"],
          ["max(headgate_copy_outbox_events)", "waiting"],
          ["sum(increase(headgate_copies_dropped_total{$of}[$range]))", "dropped"],
          [
            "count(max by (organisation) (headgate_copy_breaker_open{$of})) or vector(0)",
            "second webhooks that only time out",
          ],
        ],
      ],
      ["Alerts", "short", [["sum by (event) (increase(headgate_alerts_total{$of}[$range]))", "{{event}}"]]],
    ],
  ],
  [
    "HTTP",
    [
      [
        "Requests, by status",
        "reqps",
        [["sum by (status) (rate(headgate_http_requests_total{$of}[$range]))", "{{status}}"]],
      ],
      [
        "Time to an answer",
        "s",
        [
          [
            'histogram_quantile(0.99, sum by (le, route) (rate(headgate_http_request_seconds_bucket{$of,route=~"/p/webrtc|/stream|/session"}[$range])))',
            "{{route}}",
          ],
        ],
      ],
    ],
  ],
  [
    "Nodes",
    [
      [
        "Nodes",
        "short",
        [
          ["max by (state) (headgate_nodes)", "{{state}}"],
          ["sum(increase(headgate_node_takeovers_total[1h]))", "takeovers in an hour"],
          ["sum(increase(headgate_upgrade_failed_total[1h]))", "failed upgrades in an hour"],
        ],
      ],
      ["Which node is which", "short", [["headgate_node_info{$of}", "{{name}} {{version}} (epoch {{epoch}})"]]],
      ["What each does", "short", [["headgate_state_info{$of} == 1", "{{instance}} {{state}}"]]],
      [
        "Store",
        "s",
        [
          ["headgate_node_sign_of_life_age_seconds{$of}", "{{instance}}: since the last sign of life"],
          ["1 - headgate_store_up{$of}", "{{instance}}: 1 while it cannot be written"],
        ],
      ],
      [
        "Busiest media worker",
        "percentunit",
        [["max by (instance) (headgate_media_worker_busy_ratio{$of})", "{{instance}}"]],
      ],
      [
        "CPU and event loop",
        "percentunit",
        [
          ['rate(process_cpu_seconds_total{$of,job="headgate"}[$range])', "{{instance}}: cores"],
          ['nodejs_eventloop_lag_p99_seconds{$of,job="headgate"}', "{{instance}}: late by, s"],
        ],
      ],
      ["Memory", "bytes", [['process_resident_memory_bytes{$of,job="headgate"}', "{{instance}}"]]],
      [
        "Datagrams and connections that were refused",
        "reqps",
        [
          ["rate(headgate_media_kernel_drops_total{$of}[$range])", "{{instance}}: datagrams dropped"],
          ["rate(headgate_rtmp_connection_refused_total{$of}[$range])", "{{instance}}: connections refused"],
          ["rate(headgate_rtmp_connection_failed_total{$of}[$range])", "{{instance}}: connections failed, {{code}}"],
          ["rate(headgate_full_refusals_total{$of}[$range])", "{{instance}}: refused because of {{cause}}"],
          ["headgate_full{$of} > 0", "{{instance}}: 1 while full, {{cause}}"],
        ],
      ],
      ["Free disk", "bytes", [["headgate_data_dir_free_bytes{$of}", "{{instance}}"]]],
      [
        "Certificates end in",
        "s",
        [["headgate_certificate_expiry_timestamp_seconds{$of} - time()", "{{instance}} {{section}}"]],
      ],
      [
        "Clocks are off by",
        "s",
        [["abs(headgate_time_seconds{$of} - timestamp(headgate_time_seconds{$of}))", "{{instance}}"]],
      ],
    ],
  ],
];

/** The dashboard as Grafana imports it.
 *  @type {() => object} */
export function dashboard() {
  let id = 0;
  let y = 0;
  const panels = [];
  for (const [heading, row] of ROWS) {
    panels.push({
      id: ++id,
      type: "row",
      title: heading,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: COLUMNS, h: 1 },
    });
    y += 1;
    for (const [place, [title, unit, queries]] of row.entries()) {
      const inRow = COLUMNS / PANEL.width;
      const x = (place % inRow) * PANEL.width;
      const gridPos = { x, y: y + Math.floor(place / inRow) * PANEL.height, w: PANEL.width, h: PANEL.height };
      panels.push({ id: ++id, type: "timeseries", title, datasource: DATA_SOURCE, gridPos, ...panel(unit, queries) });
    }
    y += Math.ceil((row.length * PANEL.width) / COLUMNS) * PANEL.height;
  }
  return {
    title: "Headgate",
    uid: "headgate",
    tags: ["headgate"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    timezone: "browser",
    templating: { list: [dataSource(), nodes()] },
    panels,
  };
}

function panel(unit, queries) {
  const fill = (expression) => expression.replaceAll("$of", NODE).replaceAll("$range", "$__rate_interval");
  return {
    fieldConfig: {
      defaults: { unit, min: 0, custom: { lineWidth: 1, fillOpacity: 10, showPoints: "never" } },
      overrides: [],
    },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
    targets: queries.map(([expression, legendFormat], place) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + place),
      datasource: DATA_SOURCE,
      expr: fill(expression),
      legendFormat,
    })),
  };
}

function dataSource() {
  return { name: "datasource", label: "Data source", type: "datasource", query: "prometheus", current: {}, hide: 0 };
}

function nodes() {
  const query = "label_values(headgate_node_info, instance)";
  return {
    ...{ name: "node", label: "Node", type: "query", datasource: DATA_SOURCE, query: { query, refId: "nodes" } },
    ...{ definition: query, refresh: 2, multi: true, includeAll: true, allValue: ".*", sort: 1, hide: 0 },
    current: { text: "All", value: "$__all", selected: true },
  };
}

/** The file's content.
 *  @type {() => string} */
export const text = () => `${JSON.stringify(dashboard(), null, 2)}\n`;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(join(root, "docs/monitoring/grafana.json"), text());
}
