// `npm run matrix -- rtmp [FILTER]`, `-- push [FILTER]` or `-- whip [SECONDS]`: real programs under every condition, in
// the long form. Prints a table and exits with 1 if a cell fails. HEADGATE_MATRIX_SECONDS sets the media's length per
// cell.
// `npm run matrix -- redirects [FILTER]`: which of them follow a server's redirect.
// `npm run matrix -- runtimes [NAME …]`: the short suite with the service under each Node, Deno and Bun.
// `npm run matrix -- arguments [COUNT] [SEED]`: hostile custom arguments against every form parser.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../scripts/build.mjs";
import { prepareTests } from "../scripts/prepare.mjs";
import { runtimesMatrix } from "./matrix/runtimes.mjs";
import { matrix } from "./matrix/whip.mjs";

const [name, ...filter] = process.argv.slice(2);
if (!["rtmp", "push", "redirects", "whip", "runtimes", "arguments"].includes(name ?? "")) {
  console.error(
    "npm run matrix -- rtmp [FILTER] | push [FILTER] | redirects [FILTER] | whip [SECONDS] | runtimes [NAME …] | arguments [COUNT] [SEED]",
  );
  process.exit(2);
}
prepareTests();

if (name === "arguments") {
  const [count = "1000000", seed = "1"] = filter;
  const { status } = spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "webhook-form-parsers"], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ARGUMENTS_COUNT: count, ARGUMENTS_SEED: seed },
  });
  process.exit(status ?? 1);
}
if (name === "runtimes") process.exit(runtimesMatrix(filter) ? 0 : 1);
if (name === "whip") process.exit((await matrix(filter)) ? 0 : 1);

const folder = mkdtempSync(join(tmpdir(), "headgate-matrix-"));
const report = join(folder, "rows");
const vitest = ["node_modules/vitest/vitest.mjs", "run", "--config", "test/matrix/vitest.config.ts"];
// Names contain dots and brackets; a filter is plain text.
const wanted = filter.length > 0 ? ["-t", filter.join(" ").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")] : [];
const { status } = spawnSync(process.execPath, [...vitest, `test/matrix/${name}.matrix.ts`, ...wanted], {
  cwd: root,
  stdio: ["ignore", 2, 2],
  env: { ...process.env, HEADGATE_MATRIX_REPORT: report },
});
const lines = existsSync(report) ? readFileSync(report, "utf8").trim().split("\n") : [];
rmSync(folder, { recursive: true });
printTable(lines.map((line) => JSON.parse(line)));
process.exit(status === 0 && lines.length > 0 ? 0 : 1);

/** Rows and columns in order of first appearance; longer texts of cells follow on lines of their own. */
function printTable(cells) {
  const rows = [...new Set(cells.map(({ row }) => row))];
  for (const row of rows) {
    console.log(`\n${row}`);
    for (const { column, verdict, said } of cells.filter((cell) => cell.row === row)) {
      console.log(`  ${column.padEnd(20)} ${verdict.padEnd(7)} ${said.replaceAll("\n", " ").slice(0, 400)}`);
    }
  }
  const count = (verdict) => cells.filter((cell) => cell.verdict === verdict).length;
  console.log(
    `\n${count("passed")} passed, ${count("FAILED")} failed, ${count("cannot")} not supported by the program`,
  );
}
