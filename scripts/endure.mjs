// `npm run endure [-- R1 R2 …] [--share 0.01]`: the tests of load, faults and attacks at full volume, which takes
// hours, or at a share of it; without names all of them. Prints the result of each and, at the end, a table. All
// traffic stays on loopback.
import { parseArgs } from "node:util";
import { machine } from "../bench/_machine.mjs";
import { BuildError, build, buildLoadGenerator } from "./build.mjs";

/** The file of each row in `endure/`. */
const ROWS = {
  R1: "soak",
  R2: "churn",
  R3: "half-open",
  R4: "networks",
  R5: "sessions",
  R6: "upstreams",
  R7: "kills",
  R8: "customers",
  R9: "ends",
  R10: "drains",
  R11: "overload",
  R12: "exhaustion",
  R13: "stalled",
  R14: "fuzzing",
  R15: "mutations",
  R16: "strangers",
  R17: "addresses",
  R18: "tokens",
};

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  options: { share: { type: "string", default: "1" } },
  allowPositionals: true,
});
const share = Number(values.share);
const names = positionals.length === 0 ? Object.keys(ROWS) : positionals.map((name) => name.toUpperCase());
const unknown = names.filter((name) => !(name in ROWS));
if (unknown.length > 0 || !(share > 0 && share <= 1)) {
  console.error(`npm run endure -- [${Object.keys(ROWS).join(" ")}] [--share 0 to 1]`);
  process.exit(2);
}
try {
  build();
  buildLoadGenerator();
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}

const table = [];
for (const name of names) {
  const { title, endure } = await import(`../bench/endure/${ROWS[name]}.mjs`);
  console.log(`\n${name}: ${title}`);
  const startedAt = performance.now();
  const { figures, faults } = await endure(share).catch((error) => ({ figures: {}, faults: [String(error)] }));
  const minutes = Number(((performance.now() - startedAt) / 60_000).toFixed(1));
  console.log(JSON.stringify(figures));
  for (const fault of faults) console.log(`  ${fault}`);
  table.push({ row: name, about: title, minutes, held: faults.length === 0 ? "yes" : faults[0] });
}
console.log("");
console.table(table);
console.log(`  share ${share}; ${machine()}`);
if (table.some(({ held }) => held !== "yes")) process.exitCode = 1;
