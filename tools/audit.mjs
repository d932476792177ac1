// `npm run audit`: checks what ships against the advisory databases: npm's, and RustSec's by cargo-audit where that is
// installed. Needs the internet. Exits with 1 if there is an advisory, with 2 if a database could not be read.
import { spawnSync } from "node:child_process";
import { root } from "../scripts/build.mjs";

const lists = [
  { name: "npm", ask: () => npm(), hint: "the registry must offer its advisories" },
  { name: "crates", ask: () => crates(), hint: "cargo install cargo-audit --locked" },
];
let [found, unasked] = [0, 0];
for (const { name, ask, hint } of lists) {
  const advisories = ask();
  if (advisories === null) {
    unasked += 1;
    console.error(`${name}: could not be queried (${hint})`);
    continue;
  }
  found += advisories.length;
  console.log(`${name}: ${advisories.length} advisories`);
  for (const advisory of advisories) console.log(`  ${advisory}`);
}
process.exitCode = found > 0 ? 1 : unasked > 0 ? 2 : 0;

/** One line per advisory; null if the registry did not answer. */
function npm() {
  const report = jsonOf("npm", ["audit", "--omit=dev", "--json"]);
  if (report?.vulnerabilities === undefined) return null;
  return Object.values(report.vulnerabilities).map(({ name, severity, range }) => `${name} ${range}: ${severity}`);
}

function crates() {
  const report = jsonOf("cargo", ["audit", "--json"]);
  if (report?.vulnerabilities === undefined) return null;
  return report.vulnerabilities.list.map(
    ({ advisory, package: { name, version } }) => `${name} ${version}: ${advisory.id} ${advisory.title}`,
  );
}

function jsonOf(command, words) {
  const { stdout } = spawnSync(command, words, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  try {
    return JSON.parse(stdout);
  } catch {
    return null; // cargo-audit is not installed, or failed
  }
}
