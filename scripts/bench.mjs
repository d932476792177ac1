// `npm run bench -- NAME [ARGUMENTS]`: runs one measurement; without a name lists them.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { BuildError, build, buildLoadGenerator, root } from "./build.mjs";

const folder = join(root, "bench");
const [name, ...rest] = process.argv.slice(2);
const file = join(folder, `${name}.mjs`);
if (name === undefined || !existsSync(file)) {
  const names = readdirSync(folder).filter((entry) => /^[a-z].*\.mjs$/.test(entry));
  console.error(`npm run bench -- NAME, one of: ${names.map((entry) => entry.replace(".mjs", "")).join(", ")}`);
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
const { bench } = await import(file);
await bench(rest);
