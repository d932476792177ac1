// `npm run licences`: the components of Headgate besides its own code. Prints how many components have which licence,
// and writes dist/licences.txt, with the text of each, and dist/sbom.cdx.json, a bill of materials (CycloneDX 1.6).
// Exits with 1 if a component is not allowed; with `--check` it does nothing else.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../scripts/build.mjs";
import { billOf } from "./supply/bill.mjs";
import { components } from "./supply/components.mjs";
import { licenceTexts } from "./supply/licence-texts.mjs";
import { faultsOf } from "./supply/rules.mjs";

const all = components();
if (!process.argv.includes("--check")) write();
const faults = faultsOf(all);
for (const fault of faults) console.error(`headgate: ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;

function write() {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const folder = join(root, "dist");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "licences.txt"), licenceTexts(all));
  writeFileSync(join(folder, "sbom.cdx.json"), `${JSON.stringify(billOf(all, version), null, 2)}\n`);
  const counts = new Map();
  for (const { licence } of all) counts.set(licence, (counts.get(licence) ?? 0) + 1);
  for (const [licence, count] of [...counts].sort(([, a], [, b]) => b - a)) {
    console.log(`${String(count).padStart(5)}  ${licence}`);
  }
  console.log(`${all.length} components: dist/licences.txt, dist/sbom.cdx.json`);
}
