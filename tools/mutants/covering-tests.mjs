// Which tests execute a line of the gateway's rules: all tests run once, and what each executed is cached as long as
// neither sources nor tests change.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashOf, root } from "../../scripts/build.mjs";
import { openRunner } from "./test-runner.mjs";

/** Limit of all tests together, ms. */
const LIMIT_MS = 3_600_000;

/** What a separate process costs besides its tests, ms: if leaving out tests saves less than that, the whole
 *  file runs. */
const PROCESS_MS = 4_000;

/** `covering`: file and line → `[{ file, ids, took }]`: without ids the whole file must run. `red`: test files that
 *  failed, and are left out. */
export async function coveringTests(tests) {
  const kept = join(root, ".build", "mutants-lines.json");
  const inputs = hashOf(["ts", "test", "tools/mutants/executed-lines.mjs"], (path) => /\.(ts|mjs)$/.test(path));
  const known = existsSync(kept) ? JSON.parse(readFileSync(kept, "utf8")) : null;
  const { files, red } = known?.inputs === inputs ? known : await record(tests);
  mkdirSync(join(root, ".build"), { recursive: true });
  writeFileSync(kept, JSON.stringify({ inputs, files, red }));
  const all = files.map(({ file, took, between, tests }) => ({
    file,
    took,
    between: new Set(between),
    tests: tests.map(({ id, lines }) => ({ id, lines: new Set(lines) })),
  }));
  const covering = (file, line) => {
    const place = `${file}:${line}`;
    return all.flatMap((of) => {
      if (of.between.has(place)) return [{ file: of.file, took: of.took }];
      const ids = of.tests.filter(({ lines }) => lines.has(place)).map(({ id }) => id);
      if (ids.length === 0) return [];
      // Tests that run without the preceding ones need a second run to show that they pass without the fault.
      const part = ids.length / of.tests.length;
      const saved = of.took * (1 - 2 * part) - PROCESS_MS;
      return [saved > 0 ? { file: of.file, took: of.took * part, ids } : { file: of.file, took: of.took }];
    });
  };
  return { covering, red };
}

async function record(tests) {
  console.log(`recording which lines the tests of ${tests.length} files execute …`);
  const folder = mkdtempSync(join(tmpdir(), "headgate-mutants-lines-"));
  const runner = openRunner(folder);
  try {
    const said = await runner.run(
      tests.map((file) => ({ file })),
      LIMIT_MS,
    );
    if (said === null) throw new Error("the tests do not come to an end without any fault");
    const red = said.red.map(({ file }) => file);
    const found = readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")));
    const files = found.filter(({ file }) => !red.includes(file)).map((of) => ({ ...of, took: said.took[of.file] }));
    return { files, red };
  } finally {
    runner.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
