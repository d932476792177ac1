// The table of docs/measurements.md in one run: `npm run bench -- all [BLOCKS] [--mediamtx PROGRAM] [--only whip,rtmp]`, by
// default five blocks. Each measurement is a run of its own (`npm run bench -- NAME`); this only reads the lines of JSON
// that it prints, keeps them in .build/bench, and prints a row of Markdown for each goal of the table. A peer that is not
// on the machine is printed as absent. A block that failed, or whose generator was late, is counted and never left out.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { root } from "../scripts/build.mjs";
import { goals } from "./_goals.mjs";
import { machine } from "./_machine.mjs";
import { GAPS_LIMIT, gaps } from "./_spin.mjs";

const BLOCKS = 5;

export async function bench(words) {
  const options = { mediamtx: { type: "string" }, only: { type: "string" } };
  const { values, positionals } = parseArgs({ args: words, options, allowPositionals: true });
  const blocks = Number(positionals[0] ?? BLOCKS);
  if (!Number.isInteger(blocks) || blocks < 1) throw new Error("all [BLOCKS] [--mediamtx PROGRAM] [--only whip,rtmp]");
  const only = values.only?.split(",");
  const peers = values.mediamtx === undefined ? [] : ["--mediamtx", values.mediamtx];
  const [rows, noisy] = [[], []];
  for (const { id, run, rowsOf } of goals(blocks, peers)) {
    if (only !== undefined && !only.includes(id)) continue;
    const before = gaps();
    const found = await measured(id, run);
    const worst = Math.max(before, gaps());
    if (worst > GAPS_LIMIT) noisy.push(`${id} (${(worst * 100).toFixed(1)} % of a second in gaps)`);
    for (const row of rowsOf(found)) rows.push([id, ...row]);
  }
  console.log(`\n${machine()}; medians of ${blocks} blocks or more (least–most)\n`);
  console.log("| Goal | Measure | Headgate | Beside it | Ratio | Wanted |\n|---|---|---|---|---|---|");
  for (const row of rows) console.log(`| ${row.join(" | ")} |`);
  console.log(
    `\nThe noise gate ${noisy.length === 0 ? "passed before and after each" : `failed: ${noisy.join(", ")}`}.`,
  );
}

/** The objects that one measurement prints; its text goes to stderr. */
async function measured(id, run) {
  console.error(`headgate: ${id}: npm run bench -- ${run.join(" ")}`);
  const folder = join(root, ".build", "bench");
  mkdirSync(folder, { recursive: true });
  const raw = createWriteStream(join(folder, `${[id, ...run.slice(0, 3)].join("-")}.jsonl`));
  const child = spawn(process.execPath, [join(root, "scripts", "bench.mjs"), ...run], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const found = [];
  createInterface(child.stdout).on("line", (line) => {
    if (!line.startsWith("{")) return console.error(line);
    raw.write(`${line}\n`);
    found.push(JSON.parse(line));
  });
  await once(child, "close");
  raw.end();
  return found;
}
