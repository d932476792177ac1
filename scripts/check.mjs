// `npm run check [-- --fix]`: everything that can be checked without running the service, the fast part first.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { violations } from "./boundaries.mjs";
import { BuildError, installPackages, root } from "./build.mjs";
import { missingPages, undefinedDecisions } from "./decisions.mjs";
import { repetitions } from "./duplicates.mjs";
import { providePrograms, toBuild } from "./programs.mjs";
import { untidyFiles } from "./tidy-files.mjs";

const fix = process.argv.includes("--fix");
/** Hosts of registries, and paths that exist on one machine only. */
const FOREIGN =
  /registry\.(npmjs|yarnpkg)\.|npmjs\.org|static\.crates\.io|index\.crates\.io|pypi\.org|deb\.debian|(?<![\w.)}\]])\/(work|root|home\/\w+)(?![\w-])/;

/** Characters that `git log --oneline` and a forge's list show whole. */
const SUBJECT_LIMIT = 72;

/** Where the rule of a step stands. */
const STYLE = "CONTRIBUTING.md, Style";
const RECIPES = "CONTRIBUTING.md, Recipes";

const node = (...args) => [process.execPath, args];
const steps = [
  [
    "format and lint of TypeScript",
    () => run(...node("node_modules/@biomejs/biome/bin/biome", "check", ...(fix ? ["--write"] : []))),
  ],
  ["format of Rust", () => run("cargo", ["fmt", "--all", ...(fix ? [] : ["--check"])])],
  ["boundaries", () => report(violations(root)), "docs/architecture.md, Who may import whom"],
  ["names, sizes and words of files", () => report(untidyFiles(trackedTexts())), "CONTRIBUTING.md, Words and Style"],
  ["ids of decisions", () => report(undefinedDecisions(trackedTexts())), "docs/decisions.md"],
  ["pages that are cited", () => report(missingPages(trackedTexts()))],
  ["subject of the latest commit", () => report(longSubjects()), "CONTRIBUTING.md, How a change is checked"],
  ["repeated code", () => report(repetitions(root))],
  ["lock files and hosts", () => report(foreignTexts()), "CONTRIBUTING.md, How a change is checked"],
  [
    "licences and sources",
    () => run(...node("tools/licences.mjs", "--check")),
    "CONTRIBUTING.md, How a change is checked",
  ],
  ["types", () => run(...node("node_modules/ts7/bin/tsc", "-p", "."))],
  ["types of the broadcast page", () => run(...node("node_modules/ts7/bin/tsc", "-p", "ts/broadcast"))],
  ["types of the dashboard", () => run(...node("node_modules/ts7/bin/tsc", "-p", "ts/dashboard"))],
  ["types of the browser client", () => run(...node("node_modules/ts7/bin/tsc", "-p", "ts/webcaster"))],
  [
    "types of the browser client's tests",
    () => run(...node("node_modules/ts7/bin/tsc", "-p", "test/tsconfig.browser.json")),
  ],
  [
    "lints of Rust",
    () =>
      run("cargo", [
        "clippy",
        "--quiet",
        "--release",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
      ]),
  ],
  ["generated files", () => run(...node("scripts/native-types.mjs", "--check")), RECIPES],
  ["types of the client", () => run(...node("scripts/client-types.mjs", "--check")), RECIPES],
  [
    "instructions of the packet path",
    () => run(...node("scripts/instructions.mjs")),
    "bench/log/media.md, Instructions per video frame",
  ],
];

try {
  installPackages();
  const missing = providePrograms(toBuild);
  if (missing) throw new BuildError(missing);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}
let failed = 0;
for (const [name, step, rule = STYLE] of steps) {
  const started = Date.now();
  const passed = step();
  if (!passed) failed += 1;
  const said = `${passed ? "ok  " : "FAIL"} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`;
  console.error(passed ? said : `${said}: the rule is in ${rule}`);
}
process.exit(failed === 0 ? 0 : 1);

function run(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2] }).status === 0;
}

function report(complaints) {
  for (const complaint of complaints) console.error(`  ${complaint}`);
  return complaints.length === 0;
}

function trackedFiles() {
  const list = ["ls-files", "--cached", "--others", "--exclude-standard"];
  const { status, stdout } = spawnSync("git", list, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error("git does not list the files of this checkout");
  return stdout.split("\n").filter((name) => name !== "" && existsSync(join(root, name)));
}

function trackedTexts() {
  return trackedFiles().map((name) => ({ name, text: readFileSync(join(root, name), "utf8") }));
}

/** A shallow clone has its newest commit too; an export without git has none. */
function longSubjects() {
  const { status, stdout } = spawnSync("git", ["log", "-1", "--format=%s"], { cwd: root, encoding: "utf8" });
  const subject = status === 0 ? stdout.trim() : "";
  return subject.length > SUBJECT_LIMIT ? [`${subject.length} characters: ${subject}`] : [];
}

/** Cargo.lock is exempt: cargo writes crates.io's constant there, mirror or not. No other file may name a host. */
function foreignTexts() {
  const complaints = [];
  if (/"resolved"/.test(readFileSync(join(root, "package-lock.json"), "utf8"))) {
    complaints.push('package-lock.json holds "resolved" entries');
  }
  for (const { name, text } of trackedTexts()) {
    if (name === "Cargo.lock") continue;
    const found = FOREIGN.exec(text);
    if (found) complaints.push(`${name} names ${found[0]}`);
  }
  return complaints;
}
