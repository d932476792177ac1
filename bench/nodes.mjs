// What nodes and streams cost PostgreSQL, without media: `npm run bench -- nodes [--nodes 3] [--publishes 1000]
// [--seconds 60]`. Starts a separate server from the Debian packages, with default settings. Prints the cost
// of each operation, the most expensive statements, and what a thousand nodes would cost.
import { parseArgs } from "node:util";
import { extrapolate, measureNodes } from "./_nodes.mjs";

/** Numbers of nodes and streams to extrapolate to. */
const SIZES = [
  [3, 3_000],
  [10, 10_000],
  [100, 100_000],
  [1_000, 1_000_000],
];
/** Duration of a publish for that, seconds. */
const LASTING_S = 3_600;
const SHOWN_STATEMENTS = 12;

export async function bench(words) {
  const number = (fallback) => ({ type: "string", default: String(fallback) });
  const options = { nodes: number(3), publishes: number(1_000), seconds: number(60) };
  const { values } = parseArgs({ args: words, options });
  const [nodes, publishes, seconds] = [values.nodes, values.publishes, values.seconds].map(Number);
  const measured = await measureNodes({ nodes, publishes, seconds });
  const { costs, busiest } = measured;
  table(
    ["", "statements", "rows", "WAL bytes", "server ms"],
    Object.entries(costs).map(([of, { statements, rows, walBytes, ms }]) => [
      of,
      ...[statements, rows].map((value) => value.toFixed(3)),
      walBytes.toFixed(0),
      ms.toFixed(3),
    ]),
  );
  table(
    [
      `the busiest statements, ${nodes} nodes with ${publishes} publishes each`,
      "calls/s",
      "rows/s",
      "WAL kB/s",
      "ms/s",
    ],
    busiest
      .slice(0, SHOWN_STATEMENTS)
      .map(({ text, calls, rows, walBytes, ms }) => [
        `\`${text.replace(/\s+/g, " ").slice(0, 100)}\``,
        ...[calls, rows].map((value) => value.toFixed(1)),
        ...[walBytes / 1_000, ms].map((value) => value.toFixed(2)),
      ]),
  );
  table(
    [
      "nodes",
      "streams",
      "statements/s",
      "rows/s",
      "of them of nodes",
      "their MB/s",
      "WAL MB/s",
      "server cores",
      "connections",
    ],
    SIZES.map(([of, streams]) => {
      const at = extrapolate(measured, { nodes: of, streams, lastingS: LASTING_S });
      const whole = [of, streams, at.statements, at.rows, at.nodeRows].map((value) =>
        Math.round(value).toLocaleString("en"),
      );
      const bytes = [at.nodeRowBytes, at.walBytes].map((value) => (value / 1e6).toFixed(2));
      return [...whole, ...bytes, at.cores.toFixed(2), at.connections.toLocaleString("en")];
    }),
  );
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  console.log([line(head), line(head.map(() => "---")), ...rows.map(line), ""].join("\n"));
}
