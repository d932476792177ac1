// Whether audio starts correctly when many publishes start together: `npm run bench -- starts [--publishers
// 50] [--rate 20] [--seconds 15] [--audio stereo]`. WHIP publishers, `rate` per second, each pushed as AAC:
// for each upstream the first AAC timestamp, whether one goes back, and how often an AAC header was sent.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { machine } from "./_machine.mjs";
import { freePort, LOAD_CORE, onCore, program, startHeadgate } from "./_servers.mjs";

/** Limit of the first AAC timestamp of an upstream, ms: an encoder's delay and that of joining. */
const FIRST_LIMIT_MS = 1_000;

export async function bench(words) {
  const { values } = parseArgs({
    args: words,
    options: {
      publishers: { type: "string", default: "50" },
      rate: { type: "string", default: "20" },
      seconds: { type: "string", default: "15" },
      audio: { type: "string", default: "stereo" },
    },
  });
  const sinkPort = await freePort();
  const server = await startHeadgate(sinkPort, Number(values.publishers));
  const where = [`127.0.0.1:${sinkPort}`, server.http, server.streamUrl, server.names().join(",")];
  const child = onCore(LOAD_CORE, program(), ["starts", ...where, values.rate, values.seconds, values.audio]);
  let said = null;
  createInterface(child.stdout).on("line", (line) => {
    said = JSON.parse(line);
  });
  await once(child, "close");
  await server.stop();
  if (said === null) throw new Error("the load generator failed");
  report(said, values);
}

function report({ connected, refused, sent_late_ms, upstreams }, { publishers, rate, audio }) {
  console.table(upstreams);
  const count = (fits) => upstreams.filter(fits).length;
  const range = (name) => {
    const all = upstreams.map((upstream) => upstream[name]);
    return `${Math.min(...all)}–${Math.max(...all)}`;
  };
  const back = upstreams.filter(({ backwards }) => backwards > 0).map(({ most_back_ms }) => most_back_ms);
  console.log(`\n${publishers} WHIP publishers at ${rate} a second, AAC ${audio}`);
  console.log(
    `  connected ${connected}, refused ${refused}, upstreams ${upstreams.length}, sent late ${sent_late_ms} ms`,
  );
  console.log(`  first AAC ${range("first_aac_ms")} ms, first video ${range("first_video_ms")} ms`);
  console.log(
    `  AAC goes back on ${back.length}${back.length > 0 ? `, by ${Math.min(...back)}–${Math.max(...back)} ms` : ""}`,
  );
  console.log(`  headers sent twice on ${count(({ aac_headers }) => aac_headers > 1)}`);
  console.log(`  ${machine()}`);
  const isWrong = ({ aac_headers, aac_frames, backwards, gaps, first_aac_ms }) =>
    aac_headers !== 1 || aac_frames === 0 || backwards > 0 || gaps > 0 || first_aac_ms > FIRST_LIMIT_MS;
  if (count(isWrong) > 0 || upstreams.length !== Number(publishers)) {
    console.log(`  FAILED: ${count(isWrong)} of ${upstreams.length} upstreams`);
    process.exitCode = 1;
  }
}
