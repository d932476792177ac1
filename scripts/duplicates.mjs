// Finds the same run of lines in two places of shipped code: one of them should call the other.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";

/** Number of lines, not counting blank lines, comments, imports and lone brackets. */
const RUN_LIMIT = 10;

/** Each repetition as `a.ts:10 repeats b.ts:20`.
 *  @type {(root: string) => readonly string[]} */
export function repetitions(root) {
  const seen = new Map();
  const complaints = [];
  for (const path of ["ts", "crates", "scripts", "bench", "tools"].flatMap((folder) => [
    ...filesBelow(join(root, folder)),
  ])) {
    const name = relative(root, path);
    const lines = countingLines(readFileSync(path, "utf8"));
    let reportedUntil = -1;
    for (let at = 0; at + RUN_LIMIT <= lines.length; at += 1) {
      const run = lines
        .slice(at, at + RUN_LIMIT)
        .map(({ text }) => text)
        .join("\n");
      const first = seen.get(run);
      if (first === undefined) seen.set(run, `${name}:${lines[at].number}`);
      else if (at > reportedUntil) {
        complaints.push(`${name}:${lines[at].number} repeats ${first}`);
        reportedUntil = at + RUN_LIMIT;
      }
    }
  }
  return complaints;
}

function countingLines(text) {
  return text
    .split("\n")
    .map((line, index) => ({ text: line.trim(), number: index + 1 }))
    .filter(({ text: line }) => !/^$|^(\/\/|\*|\/\*)|^[\])}>(,;|]+$|^(import|use) /.test(line));
}

function* filesBelow(folder) {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (["target", "native", "tests", "fuzz"].includes(name)) continue;
    if (statSync(path).isDirectory()) yield* filesBelow(path);
    else if (/(?<!tests?)(?<!\.d)\.(rs|tsx?|mjs)$/.test(name)) yield path; // .d.ts files are generated
  }
}
