// `npm run audit`: asks the registries' lists of advisories about what ships: npm's, and RustSec's by cargo-audit where that
// is installed. It needs the internet. Ends with 1 when there is one, with 2 when a list could not be asked.
import { spawnSync } from "node:child_process";
import { root } from "./build.mjs";

const lists = [
  { name: "npm", ask: () => npm(), hint: "the registry must offer its advisories" },
  { name: "crates", ask: () => crates(), hint: "cargo install cargo-audit --locked" },
];
let [found, unasked] = [0, 0];
for (const { name, ask, hint } of lists) {
  const advisories = ask();
  if (advisories === null) {
    unasked += 1;
    console.error(`${name}: could not be asked (${hint})`);
    continue;
  }
  found += advisories.length;
  console.log(`${name}: ${advisories.length} advisories`);
  for (const advisory of advisories) console.log(`  ${advisory}`);
}
process.exitCode = found > 0 ? 1 : unasked > 0 ? 2 : 0;

/** One line each; null when nobody answered. */
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
    return null; // it is not there, or had nothing to say
  }
}
