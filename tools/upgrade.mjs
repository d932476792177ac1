// `npm run upgrade -- [COMMIT] [--seconds 10] [--streams 2]`: whether this checkout can replace an older one, node by
// node and under load. COMMIT (HEAD~1) is built below `.build/upgrade`, three nodes of it are started on one
// PostgreSQL, and each is drained, stopped and started as this checkout, while publishes begin and end, streams are
// checked frame by frame, and commands go through nodes of either version. Prints the result, and exits with 1 if
// something was wrong.
// `npm run upgrade -- --handover [N] [--streams 50] [--whip 4] [--players 200] [--store …] [--seconds 10 FOR EACH]`:
// the same for one service of this checkout that is replaced by a new process N times (`headgate upgrade`).
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { BuildError, build, root } from "../scripts/build.mjs";
import { providePrograms, toTest } from "../scripts/programs.mjs";
import { checkoutOf } from "./upgrade/checkout.mjs";
import { rehearseHandover } from "./upgrade/handover.mjs";
import { rehearse } from "./upgrade/rehearsal.mjs";

const NODES = 3;
const PROGRAMS = ["PostgreSQL", "ffmpeg", "ffprobe"];

const asked = askedFor();
const tell = (text) => console.error(`headgate: ${text}`);
let before;
try {
  build();
  const missing = providePrograms(toTest.filter(({ name }) => PROGRAMS.includes(name)));
  if (missing) throw new BuildError(missing);
  if (asked.upgrades === null) before = checkoutOf(asked.commit);
  else requireBench();
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`headgate: ${error.message}`);
  process.exit(1);
}
const { wrong, log, ...found } =
  asked.upgrades === null
    ? await rehearse({
        ...{ before, after: root, nodes: NODES, streams: asked.streams, calmMs: asked.seconds * 1_000, tell },
      })
    : await rehearseHandover({ ...asked, tell });
console.log(JSON.stringify({ ...(asked.upgrades === null && { commit: asked.commit }), ...found, wrong }, null, 2));
if (wrong.length > 0) console.error(log.join("\n"));
process.exit(wrong.length > 0 ? 1 : 0);

function askedFor() {
  const options = {
    seconds: { type: "string", default: "10" },
    streams: { type: "string" },
    handover: { type: "boolean", default: false },
    whip: { type: "string", default: "4" },
    players: { type: "string", default: "200" },
    store: { type: "string", default: "embedded" },
  };
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    const [commit = "HEAD~1", ...more] = positionals;
    const streams = Number(values.streams ?? (values.handover ? 50 : 2));
    const [seconds, whip, players] = [values.seconds, values.whip, values.players].map(Number);
    const upgrades = values.handover ? Number(positionals[0] ?? 20) : null;
    if (upgrades !== null && [upgrades, streams, players].every((each) => Number.isInteger(each) && each > 0))
      return { upgrades, seconds, streams, whip, players, store: values.store };
    if (upgrades !== null) throw new Error("these are not numbers");
    if (seconds > 0 && Number.isInteger(streams) && streams > 0 && more.length === 0)
      return { commit, seconds, streams, upgrades };
  } catch (error) {
    console.error(`headgate: ${error.message}`);
  }
  console.error("npm run upgrade -- [COMMIT] [--seconds SECONDS BETWEEN TWO NODES] [--streams STREAMS OF EACH NODE]");
  console.error("npm run upgrade -- --handover [N] [--streams N] [--whip N] [--players N] [--store embedded|postgres]");
  process.exit(2);
}

/** Builds the load generator, which is not shipped: only this script needs it. */
function requireBench() {
  const words = ["build", "--release", "--locked", "-p", "headgate-bench"];
  const { status } = spawnSync("cargo", words, { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new BuildError("the load generator is not built");
}
