// R14: every parser and whole sessions under a coverage-guided fuzzer.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../../scripts/build.mjs";

export const title = "coverage-guided fuzzing of every parser and of sessions";

/** Per target; enough for EXECUTIONS on one core of 2026. */
const SECONDS = 120;
/** In total. */
const EXECUTIONS = 100_000_000;

export async function endure(share) {
  const seconds = Math.max(5, Math.round(SECONDS * share));
  const child = spawn(process.execPath, [join(root, "tools", "fuzz.mjs"), String(seconds)], {
    ...{ cwd: root, stdio: ["ignore", "pipe", "pipe"] },
  });
  let [executions, target] = [0, ""];
  const last = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface(stream).on("line", (line) => {
      target = /: fuzzing (\w+) for/.exec(line)?.[1] ?? target;
      const runs = Number(/^stat::number_of_executed_units: +(\d+)/.exec(line)?.[1] ?? 0);
      executions += runs;
      if (runs > 0) console.log(`  ${target}: ${runs} executions`);
      last.push(line);
      if (last.length > 5) last.shift();
    });
  }
  const [code] = await once(child, "close");
  const faults = code === 0 ? [] : [`the fuzzer ended with ${code}: ${last.join(" | ")}`];
  if (code === 0 && executions < EXECUTIONS * share) faults.push(`${executions} executions, fewer than required`);
  return { figures: { executions, secondsEach: seconds }, faults };
}
