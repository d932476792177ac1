// Comparison with another checkout in one run: its folder on the command line, and the ratio of two sets of blocks.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { median } from "./_servers.mjs";

/** Takes `--against DIR` out of the arguments; the checkout there must be built: its addon and its dist. */
export function readAgainst(words) {
  const at = words.indexOf("--against");
  if (at < 0) return { against: null, rest: words };
  const against = resolve(words[at + 1] ?? "");
  const needed = ["dist/cli/main.js", "ts/native/headgate.node", "node_modules"];
  const missing = needed.filter((path) => !existsSync(join(against, path)));
  if (missing.length > 0) throw new Error(`--against: the other checkout has no ${missing.join(", ")}: build it there`);
  return { against, rest: words.filter((_, index) => index !== at && index !== at + 1) };
}

/** Two servers' costs, ms, and the ratio of their medians. */
export function resultOf(...servers) {
  const line = ({ name, costs }) => {
    const sorted = [...costs].sort((a, b) => a - b);
    return `  ${name}: ${median(sorted).toFixed(3)} ms (${sorted[0]}–${sorted.at(-1)})`;
  };
  const [ours, other] = servers.map(({ costs }) => median(costs));
  return [...servers.map(line), `  ratio ${(ours / other).toFixed(3)}`].join("\n");
}
