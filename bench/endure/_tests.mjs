// Rows whose whole volume is in tests: runs these, including those of the whole run, and counts them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { prepareTests } from "../../scripts/prepare.mjs";

export async function countTests(files, env = {}) {
  prepareTests();
  const folder = mkdtempSync(join(tmpdir(), "headgate-endure-"));
  const report = join(folder, "report.json");
  const words = ["run", ...files.map((file) => `/${file}.test.ts`), "--reporter=json", `--outputFile=${report}`];
  const child = spawn(join(root, "node_modules", ".bin", "vitest"), words, {
    ...{ cwd: root, env: { ...process.env, TEST_WHOLE: "yes", ...env }, stdio: ["ignore", "ignore", "inherit"] },
  });
  await once(child, "close");
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(readFileSync(report, "utf8"));
  rmSync(folder, { recursive: true });
  const failed = testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === "failed").map(({ fullName }) => fullName),
  );
  return { figures: { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests }, faults: failed };
}
