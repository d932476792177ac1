// `npm run upgrade -- [COMMIT] [--seconds 10] [--streams 2]`: whether this checkout can take the place of an older one, node
// by node and under load. COMMIT (HEAD~1) is built below `.build/upgrade`, three nodes of it are started on one PostgreSQL,
// and each is drained, stopped and started as this checkout, while publishes begin and end, streams are watched frame by
// frame, and commands go through nodes of either version. Prints what was found, and ends with 1 when something was wrong.
import { parseArgs } from "node:util";
import { BuildError, build, root } from "./build.mjs";
import { providePrograms, toTest } from "./programs.mjs";
import { checkoutOf } from "./upgrade/checkout.mjs";
import { rehearse } from "./upgrade/rehearsal.mjs";

const NODES = 3;
const PROGRAMS = ["PostgreSQL", "ffmpeg", "ffprobe"];

const asked = askedFor();
let before;
try {
  build();
  const missing = providePrograms(toTest.filter(({ name }) => PROGRAMS.includes(name)));
  if (missing) throw new BuildError(missing);
  before = checkoutOf(asked.commit);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}
const { wrong, log, ...found } = await rehearse({
  ...{ before, after: root, nodes: NODES, streams: asked.streams, calmMs: asked.seconds * 1_000 },
  tell: (text) => console.error(`headgate: ${text}`),
});
console.log(JSON.stringify({ commit: asked.commit, ...found, wrong }, null, 2));
if (wrong.length > 0) console.error(log.join("\n"));
process.exit(wrong.length > 0 ? 1 : 0);

function askedFor() {
  const options = {
    seconds: { type: "string", default: "10" },
    streams: { type: "string", default: "2" },
  };
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [commit = "HEAD~1", ...more] = positionals;
    const [seconds, streams] = [values.seconds, values.streams].map(Number);
    if (seconds > 0 && Number.isInteger(streams) && streams > 0 && more.length === 0)
      return { commit, seconds, streams };
  } catch (error) {
    console.error(`headgate: ${error.message}`);
  }
  console.error("npm run upgrade -- [COMMIT] [--seconds SECONDS BETWEEN TWO NODES] [--streams STREAMS OF EACH NODE]");
  process.exit(2);
}
