// How fast WHIP publishes start: `npm run bench -- first-frames [RATE… SECONDS BLOCKS]`, by default `20 200
// 10 3`. RATE publishes start every second on a service with one core, whether or not earlier ones are slow;
// each is pushed to the load generator and deleted half a second after its first picture arrives there.
// Prints the times from the POST to its answer, to a connected transport and to the first picture upstream,
// and the CPU time of the whole service per publish; with a webhook that answers immediately, and without
// one.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuSeconds } from "./_process.mjs";
import { freePort, LOAD_CORE, median, runLoad, startHeadgate } from "./_servers.mjs";
import { certificate, startCustomer } from "./_webhook.mjs";

const DEFAULTS = [20, 200, 10, 3];
/** Seconds of the same load before the measurement, because V8 is still compiling. */
const WARM_S = 8;
/** A name is used again after this many seconds, when its former publish has ended. */
const NAME_REST_S = 4;

export async function bench(words) {
  const given = words.map(Number);
  if (given.some(Number.isNaN)) throw new Error("first-frames [RATE… SECONDS BLOCKS]");
  const numbers = given.length >= 3 ? given : DEFAULTS;
  const [seconds, blocks] = numbers.slice(-2);
  const cases = numbers.slice(0, -2).flatMap((rate) => [true, false].map((hasWebhook) => ({ rate, hasWebhook })));
  const found = cases.map((one) => ({ ...one, blocks: [] }));
  for (let block = 0; block < blocks; block += 1) {
    for (const one of block % 2 === 0 ? found : [...found].reverse()) {
      const result = await measure(one, seconds);
      console.log(JSON.stringify({ rate: one.rate, webhook: one.hasWebhook, ...result }));
      one.blocks.push(result);
    }
  }
  console.table(found.map(summary));
  const failed = found.flatMap(({ blocks: all }) => all).filter(({ refused, lost }) => refused + lost > 0);
  if (failed.length > 0) {
    console.log(`FAILED: ${failed.length} blocks with publishes that were refused or had no picture`);
    process.exitCode = 1;
  }
}

function summary({ rate, hasWebhook, blocks }) {
  const of = (pick) => Number(median(blocks.map(pick)).toFixed(2));
  return {
    ...{ rate, webhook: hasWebhook, cpuMs: of(({ cpuMs }) => cpuMs), core: of(({ core }) => core) },
    ...{ answered: of((block) => block.answered_ms.p50), answeredP99: of((block) => block.answered_ms.p99) },
    connected: of((block) => block.connected_ms.p50),
    ...{ firstFrame: of((block) => block.first_frame_ms.p50), firstFrameP99: of((block) => block.first_frame_ms.p99) },
  };
}

async function measure({ rate, hasWebhook }, seconds) {
  const folder = mkdtempSync(join(tmpdir(), "headgate-first-frames-"));
  const ca = join(folder, "ca.pem");
  writeFileSync(ca, certificate.cert);
  const customer = hasWebhook ? await startCustomer("ok", LOAD_CORE) : null;
  const sinkPort = await freePort();
  // A webhook on this machine is called only in development mode.
  const env = { HEADGATE_DEV: "on", HEADGATE_WEBHOOK_CA: ca, HEADGATE_LIMITS_WHIP_OFFERS_PER_SECOND: "0" };
  const server = await startHeadgate(sinkPort, rate * NAME_REST_S, { logLevel: "error", env });
  try {
    if (customer !== null) await server.call("PUT", "/organisation/webhook", { webhook: customer.url });
    const where = [`127.0.0.1:${sinkPort}`, server.http, server.streamUrl, server.names().join(",")];
    const words = [rate, rate * WARM_S, seconds].map(String);
    const probe = () => ({ cpu: cpuSeconds(server.pid) });
    const { balance, seen } = await runLoad(["first-frames", ...where, ...words], probe);
    const cpu = seen.measured.cpu - seen.measuring.cpu;
    return {
      ...balance,
      cpuMs: Number(((cpu * 1_000) / balance.started).toFixed(3)),
      core: Number((cpu / (seen.measured.time - seen.measuring.time)).toFixed(3)),
    };
  } finally {
    await server.stop();
    customer?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
