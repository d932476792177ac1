// Which TypeScript tests are nearest to a file: by the number of imports between them, tests with similar names first.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";

/** Tests that start the built service or inspect the repository itself are not affected by a changed source. */
const ELSEWHERE = /support\/(headgate|chromium|nginx-rtmp|ffmpeg|whip-clients|pyav)\.ts|(bench|scripts|tools)\//;

/** For the tree at `root`, returns a function: a source file → the tests that load it, the nearest first. */
export function testsOf(root) {
  const imports = new Map();
  const tests = readdirSync(join(root, "test"), { recursive: true })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("test", name))
    .filter((name) => !ELSEWHERE.test(readFileSync(join(root, name), "utf8")));
  const distances = new Map(tests.map((test) => [test, distancesFrom(test)]));

  return (file) => {
    // In the singular, as most tests are named.
    const words = [...basename(file, ".ts").split("-"), basename(dirname(file))].map((word) => word.replace(/s$/, ""));
    const like = (test) => words.filter((word) => test.includes(word)).length / words.length;
    const rank = (test) => (distances.get(test)?.get(file) ?? 0) - 2 * like(test);
    return tests
      .filter((test) => distances.get(test)?.has(file))
      .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  };

  function distancesFrom(test) {
    const found = new Map([[test, 0]]);
    for (const [file, distance] of found) {
      for (const next of importsOf(file)) if (!found.has(next)) found.set(next, distance + 1);
    }
    return found;
  }

  function importsOf(file) {
    if (!imports.has(file)) {
      const text = readFileSync(join(root, file), "utf8");
      const targets = [...text.matchAll(/^(?:import|export)\s(?!type)[^;]*?from "(\.[^"]+\.ts)"/gm)];
      const paths = targets.map(([, target]) => normalize(join(dirname(file), target)));
      imports.set(
        file,
        paths.filter((path) => existsSync(join(root, path))),
      );
    }
    return imports.get(file);
  }
}
