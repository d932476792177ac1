// A thousand organisations, fifty of which hang: what does that cost customer B's publishes? Of the fifty, a
// third have a web server that accepts the request and never answers, a third have one that accepts the
// connection and sends nothing, and a third have a name server that never answers. Blocks alternate: B alone;
// B among the healthy ones, which all publish; B among all. Each round uses fifty new hanging organisations,
// so that every round includes their first calls, time-outs and opening breakers.
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { offer } from "./_offer.mjs";
import { openPublishing } from "./_publishing.mjs";
import { silenceNames } from "./_silent-names.mjs";
import { cpuSince, percentile, startCustomer, wait } from "./_webhook.mjs";

const ORGANISATIONS = 1_000;
const HANGING = 50;
/** Publishes per second of B, of all other healthy ones together, and of all hanging ones together. */
const B_PER_SECOND = 50;
const HEALTHY_PER_SECOND = 50;
const HANGING_PER_SECOND = 100;
/** Streams of each hanging organisation: a name is taken while its publish is being decided. */
const HANGING_STREAMS = 20;
const B_STREAMS = 400;
/** How long after the others B starts, ms. */
const AHEAD_MS = 500;
const BLOCKS = ["alone", "healthy", "hanging", "hanging", "healthy", "alone"];

/** `apart`: the gateway has one core; the customers, which in reality are on other machines, have the other.
 *
 *  @type {(seconds?: number, rounds?: number, organisations?: number, hanging?: number, apart?: boolean) => Promise<{ wrong: number; alone: number[]; healthy: number[]; hanging: number[] }>} */
export async function tenants(
  seconds = 8,
  rounds = 6,
  organisations = ORGANISATIONS,
  hanging = HANGING,
  apart = false,
) {
  const customersCore = apart ? separateCores() : null;
  const restoreNames = await silenceNames();
  const [good, hang, mute] = await Promise.all(
    ["ok", "hang", "mute"].map((behaviour) => startCustomer(behaviour, customersCore)),
  );
  const gateway = await openPublishing();
  const hooks = [() => hang.url, () => mute.url, (id) => `https://${id}.example/hook`];
  await gateway.addOrganisation("bbbbb", good.url, B_STREAMS);
  const healthy = organisations - hanging - 1;
  for (let at = 0; at < healthy; at += 1) await gateway.addOrganisation(`h${at}`, good.url, 1);
  for (let round = 0; round < rounds; round += 1) {
    for (let at = 0; at < hanging; at += 1) {
      const id = `x${round}x${at}`;
      await gateway.addOrganisation(id, hooks[at % hooks.length](id), HANGING_STREAMS);
    }
  }

  let wrong = 0;
  /** A publish that should be decided as expected, and ends immediately. On a shared machine some are late.
   *  */
  const ask = async (name, isExpected) => {
    const { allowed, clientId, tookMs } = await gateway.request(name);
    if (allowed !== isExpected) wrong += 1;
    if (allowed) gateway.end(clientId);
    return tookMs;
  };
  const askB = (at) => ask(`bbbbb-${at % B_STREAMS}`, true);
  const askHealthy = (at) => ask(`h${at % healthy}-0`, true);
  const askHanging = (round) => (at) =>
    ask(`x${round}x${at % hanging}-${Math.floor(at / hanging) % HANGING_STREAMS}`, false);

  await offer(B_PER_SECOND, 3, askB);
  const times = { alone: [], healthy: [], hanging: [] };
  /** CPU time of this process, as shares of a core. */
  const cpu = { alone: [], healthy: [], hanging: [] };
  const ratios = [];
  let hung = 0;
  for (let round = 0; round < rounds; round += 1) {
    const ofRound = { alone: [], healthy: [], hanging: [] };
    for (const block of BLOCKS) {
      const others = [];
      if (block !== "alone") others.push(offer(HEALTHY_PER_SECOND, seconds, askHealthy));
      if (block === "hanging") others.push(offer(HANGING_PER_SECOND, seconds, askHanging(round)));
      if (others.length > 0) await wait(AHEAD_MS);
      const [cpuBefore, startedAt] = [process.cpuUsage(), performance.now()];
      ofRound[block].push(...(await offer(B_PER_SECOND, seconds - 2 * (AHEAD_MS / 1_000), askB)));
      cpu[block].push((cpuSince(cpuBefore) * 1_000) / (performance.now() - startedAt));
      const [, ofHanging = []] = await Promise.all(others);
      hung += ofHanging.length;
    }
    for (const block of Object.keys(times)) times[block].push(...ofRound[block]);
    ratios.push(p99(ofRound.hanging) / p99(ofRound.alone));
  }
  report({ times, cpu, ratios, hung, wrong }, { organisations, hanging });
  await gateway.close();
  for (const customer of [good, hang, mute]) customer.stop();
  restoreNames();
  return { wrong, ...times };
}

/** Pins this process to one core and returns the customers' core; null if there is only one. */
function separateCores() {
  if (availableParallelism() < 2) return null;
  spawnSync("taskset", ["-acp", "0", String(process.pid)]);
  return "1";
}

const share = (all) => Math.round((100 * all.reduce((sum, value) => sum + value, 0)) / all.length);
const p99 = (values) => percentile(values, 0.99);

function report({ times, cpu, ratios, hung, wrong }, { organisations, hanging }) {
  console.log(
    `${organisations} organisations, ${hanging} of them hang on each of ${hung} publishes, ${HANGING_PER_SECOND} a second; ` +
      `the others have ${HEALTHY_PER_SECOND}, B ${B_PER_SECOND} a second`,
  );
  for (const [block, all] of Object.entries(times)) {
    const [p50, last] = [0.5, 0.99].map((p) => percentile(all, p).toFixed(1));
    const beside = { alone: "alone", healthy: "beside the healthy ones", hanging: "beside all" }[block];
    console.log(
      `  B ${beside}: ${all.length} publishes, admission p50 ${p50} ms, p99 ${last} ms, the gateway ${share(cpu[block])} % of a core`,
    );
  }
  const each = ratios.map((value) => value.toFixed(2)).join(" ");
  console.log(
    `  p99 ratio all / alone ${(p99(times.hanging) / p99(times.alone)).toFixed(2)}, by round ${each}, ` +
      `median ${percentile(ratios, 0.5).toFixed(2)}; all / healthy ` +
      `${(p99(times.hanging) / p99(times.healthy)).toFixed(2)}`,
  );
  console.log(`  goal: 1.2; ${wrong} decided otherwise than expected`);
}
