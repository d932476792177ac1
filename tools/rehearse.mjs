// `npm run rehearse -- [RELOADS] [--streams 2]`: the day of an operator as one script (rehearse/day.mjs), from the
// installation to the removal, with 10 upgrades whose new process is killed. Prints the result, and exits with 1 if
// something was wrong. As root a disk is filled as well.
import { parseArgs } from "node:util";
import { BuildError, build } from "../scripts/build.mjs";
import { providePrograms, toTest } from "../scripts/programs.mjs";
import { rehearseDay } from "./rehearse/day.mjs";

const NEEDED = ["ffmpeg", "ffprobe", "PostgreSQL", "libfaketime"];

const { values, positionals } = parseArgs({
  options: { streams: { type: "string", default: "2" } },
  allowPositionals: true,
});
const [reloads, streams] = [Number(positionals[0] ?? 10), Number(values.streams)];
if (![reloads, streams].every((each) => Number.isInteger(each) && each > 0)) {
  console.error("npm run rehearse -- [RELOADS] [--streams STREAMS]");
  process.exit(2);
}
try {
  build();
  const missing = providePrograms(toTest.filter(({ name }) => NEEDED.includes(name)));
  if (missing) throw new BuildError(missing);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}
const tell = (text) => console.error(`headgate: ${text}`);
const { wrong, log, ...found } = await rehearseDay({ reloads, streams, tell });
console.log(JSON.stringify({ ...found, wrong }, null, 2));
if (wrong.length > 0) console.error(log.join("\n"));
process.exit(wrong.length > 0 ? 1 : 0);
