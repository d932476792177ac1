// The short suite with the service under each runtime: test/runtimes*.test.ts, and suites that start a service of their
// own (under the runtime in TEST_RUNTIME). What a runtime cannot do is listed here and must fail; otherwise this list
// is out of date.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { root } from "../../scripts/build.mjs";
import { provideRuntime, RUNTIME_NAMES } from "../../scripts/runtimes.mjs";

const OWN = ["runtimes", "runtimes-postgres"];
/** Each starts the service as its operator does, and takes seconds to a minute. */
const SUITES = [
  ...["rtmp-publish", "rtmps", "upstreams", "preview", "live-metrics"],
  ...["whip-impairment", "webhook-reason", "https", "http-broken-off", "guide"],
  ...["drain", "terminal-signals", "cluster-placement", "handover"],
];
/** Whole suites, or tests by the beginning of their names. */
const CANNOT = {
  deno: ["handover"],
  bun: ["handover", "https: a renewed certificate is used by both ports"],
};

/** Prints a row for each suite of each runtime.
 *  @param {readonly string[]} wanted names of runtimes; empty for all
 *  @returns {boolean} whether everything passed except what a runtime cannot do */
export function runtimesMatrix(wanted) {
  const unknown = wanted.filter((name) => !RUNTIME_NAMES.includes(name));
  if (unknown.length > 0)
    throw new Error(`no such runtime: ${unknown.join(", ")}; there are ${RUNTIME_NAMES.join(", ")}`);
  const names = wanted.length > 0 ? wanted : RUNTIME_NAMES;
  // All runtimes are run, even if one fails.
  return names.map(runOn).every(Boolean);
}

function runOn(runtime) {
  const [program, ...before] = provideRuntime(runtime);
  const version = spawnSync(program, ["--version"], { encoding: "utf8" }).stdout.split("\n")[0];
  console.log(`\n${runtime} (${version}${before.length > 0 ? `; ${before.join(" ")}` : ""})`);
  const tests = [...testsOf(OWN, { RUNTIMES: runtime }), ...testsOf(SUITES, { TEST_RUNTIME: runtime })];
  const excepted = CANNOT[runtime] ?? [];
  const mayFail = (test) => excepted.some((each) => each === test.suite || test.name.startsWith(each));
  let isRight = true;
  for (const suite of [...OWN, ...SUITES]) {
    const own = tests.filter((test) => test.suite === suite);
    const failed = own.filter(({ passed }) => !passed);
    const wrong = failed.filter((test) => !mayFail(test));
    const verdict = own.length === 0 || wrong.length > 0 ? "FAILED" : failed.length > 0 ? "cannot" : "passed";
    isRight &&= verdict !== "FAILED";
    const seconds = (own.reduce((sum, { ms }) => sum + ms, 0) / 1_000).toFixed(1);
    console.log(
      `  ${suite.padEnd(18)} ${verdict.padEnd(7)} ${own.length - failed.length} of ${own.length}, ${seconds} s`,
    );
    for (const { name, message } of failed) console.log(`    ${name}: ${message}`);
  }
  for (const each of excepted) {
    const of = tests.filter(({ suite, name }) => each === suite || name.startsWith(each));
    if (of.every(({ passed }) => passed)) {
      isRight = false;
      console.log(`  unexpectedly passed: ${each}`);
    }
  }
  return isRight;
}

/** Runs suites one after the other.
 *  @returns {readonly { suite: string, name: string, passed: boolean, ms: number, message: string }[]} */
function testsOf(suites, env) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-matrix-"));
  const report = join(folder, "report.json");
  const files = suites.map((name) => `test/${name}.test.ts`);
  spawnSync(
    process.execPath,
    [
      ...["node_modules/vitest/vitest.mjs", "run", "--project", "together", "--no-file-parallelism"],
      ...["--reporter=json", `--outputFile=${report}`, ...files],
    ],
    { cwd: root, stdio: ["ignore", 2, 2], env: { ...process.env, ...env } },
  );
  try {
    const { testResults } = JSON.parse(readFileSync(report, "utf8"));
    return testResults.flatMap(({ name, assertionResults }) => {
      const suite = basename(name, ".test.ts");
      return assertionResults.map(({ fullName, status, duration = 0, failureMessages }) => ({
        suite,
        name: `${suite}: ${fullName}`,
        passed: status === "passed",
        ms: duration ?? 0,
        message: (failureMessages?.[0] ?? status).split("\n")[0].slice(0, 200),
      }));
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
