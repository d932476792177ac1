// R11: three times as many set-ups as a node has room for.
import { measure } from "../overload.mjs";

export const title = "three times the set-ups that a node has room for, beside its running streams";

const TIMES = 5;
const SECONDS = 60;
const STREAMS = 20;
/** The available room is measured with this rate of offers for this long. A machine that accepts them all gets a
 *  lower load limit: offers alone do not fill a fast one, and a single process cannot send more. */
const TRIAL = { rate: 180, seconds: 15 };
const LOAD_PERCENTS = ["90", "45", "25", "12"];
/** Offers as a multiple of the available room. */
const FACTOR = 3;

export async function endure(share) {
  const times = Math.max(1, Math.round(TIMES * share));
  const seconds = Math.max(12, Math.round(SECONDS * Math.min(1, share * TIMES)));
  const { room, load } = await roomForSetups();
  const runs = [];
  for (let at = 0; at < times; at += 1) {
    runs.push(await measure({ seconds, streams: STREAMS, rate: FACTOR * room, load }));
  }
  const faults = runs.filter(({ verdict }) => verdict !== "held").map(({ verdict }, at) => `run ${at}: ${verdict}`);
  return { figures: { room, load, runs }, faults };
}

/** Set-ups per second that are admitted when too many are offered, and the load limit that bounds them. */
async function roomForSetups() {
  for (const load of LOAD_PERCENTS) {
    const trial = await measure({ ...TRIAL, streams: STREAMS, load });
    if (trial.refused > 0) return { load, room: Math.round(trial["let in"] / trial["crowd s"]) };
  }
  throw new Error(`this node has room for ${TRIAL.rate} set-ups a second at any load`);
}
