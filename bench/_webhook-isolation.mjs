// Customer A hangs on every call at 200 offered publishes a second, unless told otherwise; what does that cost
// customer B's publishes? Blocks alternate: B alone, B beside A, B beside A, B alone. Each round uses a new A, so that
// its first seconds, in which calls go out and time out and its breaker opens, are in every round.
import { offer } from "./_offer.mjs";
import { DEADLINE_MS, openPublishing } from "./_publishing.mjs";
import { percentile, startCustomer, wait } from "./_webhook.mjs";

const A_STREAMS = 2_000;
const B_STREAMS = 400;
/** `ofA` and `ofB`: publishes per second; `secondsOfA`: how long A's go on; `aheadMs`: B's begin this much later than
 *  A's, and end this much before the end of the block.
 *  @type {(seconds?: number, rounds?: number, load?: { ofA?: number; ofB?: number; secondsOfA?: number; aheadMs?: number }) => Promise<{ ratio: number; alone: number[]; beside: number[] }>} */
export async function isolation(
  seconds = 8,
  rounds = 6,
  { ofA = 200, ofB = 50, secondsOfA = seconds, aheadMs = 500 } = {},
) {
  const [hanging, good] = [await startCustomer("hang"), await startCustomer("ok")];
  const gateway = await openPublishing();
  for (let round = 0; round < rounds; round += 1) {
    await gateway.addOrganisation(`aaaaa${round}`, hanging.url, Math.min(A_STREAMS, 2 * ofA * secondsOfA));
  }
  await gateway.addOrganisation("bbbbb", good.url, B_STREAMS);
  const askB = async (at) => {
    const { allowed, clientId, description, tookMs } = await gateway.request(`bbbbb-${at % B_STREAMS}`);
    if (allowed) gateway.end(clientId);
    // On a machine that has no time for either customer, both miss the deadline: that publish is late.
    else if (tookMs < DEADLINE_MS) throw new Error(`B's publish was denied after ${tookMs} ms: ${description}`);
    return tookMs;
  };
  const askA = (round) => async (at) => {
    const { allowed } = await gateway.request(`aaaaa${round}-${at % A_STREAMS}`);
    if (allowed) throw new Error("a publish was allowed without an answer");
  };
  await offer(ofB, 3, askB);
  const times = { alone: [], beside: [] };
  const ratios = [];
  let asked = 0;
  for (let round = 0; round < rounds; round += 1) {
    const ofRound = { alone: [], beside: [] };
    for (const block of ["alone", "beside", "beside", "alone"]) {
      const a = block === "beside" ? offer(ofA, secondsOfA, askA(round)) : Promise.resolve([]);
      if (block === "beside") await wait(aheadMs);
      ofRound[block].push(...(await offer(ofB, seconds - 2 * (aheadMs / 1_000), askB)));
      asked += (await a).length;
    }
    for (const block of ["alone", "beside"]) times[block].push(...ofRound[block]);
    ratios.push(percentile(ofRound.beside, 0.99) / percentile(ofRound.alone, 0.99));
  }
  const line = (name) => {
    const [p50, p99] = [0.5, 0.99].map((p) => percentile(times[name], p).toFixed(1));
    console.log(`  B ${name}: ${times[name].length} publishes, admission p50 ${p50} ms, p99 ${p99} ms`);
  };
  console.log(`Customer A hangs on each of ${asked} publishes, ${ofA} a second; B has ${ofB} a second`);
  line("alone");
  line("beside");
  const ratio = percentile(times.beside, 0.99) / percentile(times.alone, 0.99);
  const each = ratios.map((value) => value.toFixed(2)).join(" ");
  console.log(`  p99 ratio ${ratio.toFixed(2)}, by round ${each}, median ${percentile(ratios, 0.5).toFixed(2)}`);
  console.log("  goal: within 20 %");
  await gateway.close();
  hanging.stop();
  good.stop();
  return { ratio, alone: times.alone, beside: times.beside };
}
