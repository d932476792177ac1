// scripts/duplicates finds code that was written twice, and only that.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repetitions } from "../../scripts/duplicates.mjs";

const lines = (count: number) => Array.from({ length: count }, (_, at) => `const line${at} = ${at};`);

function found(files: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const root = mkdtempSync(join(tmpdir(), "headgate-repetition-"));
  for (const folder of ["ts", "crates", "scripts", "bench", "tools"]) mkdirSync(join(root, folder));
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text.join("\n"));
  const complaints = repetitions(root);
  rmSync(root, { recursive: true });
  return complaints;
}

test("ten lines written twice are caught, whatever their indentation and comments", () => {
  const again = lines(10).flatMap((line, at) => [`  ${line}`, "", `// ${at}`]);
  expect(found({ "ts/a.ts": lines(10), "ts/b.ts": again })).toEqual(["ts/b.ts:1 repeats ts/a.ts:1"]);
});

test("nine lines, and tests, may repeat", () => {
  expect(found({ "ts/a.ts": lines(9), "ts/b.ts": lines(9) })).toEqual([]);
  expect(found({ "ts/a.ts": lines(20), "ts/a.test.ts": lines(20), "crates/a_tests.rs": lines(20) })).toEqual([]);
});
